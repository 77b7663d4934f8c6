"""Run the operators of a step in another process, with Dagster Pipes."""
