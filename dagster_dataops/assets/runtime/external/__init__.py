"""A step whose operators run in another process, which Dagster Pipes starts."""
