"""Graphs of operators as immutable data, with their checks. Nothing runs here."""
