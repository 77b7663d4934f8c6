"""Kinds of operators: one description of each, in one table. Nothing else compares their names."""
