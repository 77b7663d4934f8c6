"""Dagster steps: what a step runs and the events it yields."""
