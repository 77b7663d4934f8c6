"""Operators joined into a graph that materializes: data only, nothing runs here."""
