"""Operators that take whole datasets, selections or streams, one module a kind."""
