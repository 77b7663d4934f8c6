"""The command line of the package: ``main`` takes its arguments and returns the exit status."""

from dagster_dataops.__main__ import main

__all__ = ["main"]
