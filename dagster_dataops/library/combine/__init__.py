"""Operators that make one result of several."""
