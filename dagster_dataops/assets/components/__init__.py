"""Pipelines declared in a defs.yaml: the component, its fields, and error positions."""
