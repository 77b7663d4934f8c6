"""The process that reads a shard: tests of its death replace what it runs, or kill it."""

from dagster_dataops.streams.sharding import shard_process

__all__ = ["shard_process"]
