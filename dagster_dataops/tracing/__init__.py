"""Tracing: from which source line a record came, and what became of a source line."""
