"""How operators and whole graphs are run from plain Python."""
