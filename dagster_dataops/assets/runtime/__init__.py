"""A step while it runs: resource, progress, observations, and what Dagster has recorded."""
