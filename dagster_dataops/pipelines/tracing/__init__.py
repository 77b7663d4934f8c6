"""Tracing: follow a record back to its source line, or a source line to its records."""
