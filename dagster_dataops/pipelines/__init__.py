"""Pipelines and operators run from plain Python."""
