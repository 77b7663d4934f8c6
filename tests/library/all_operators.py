"""The groups of operators that ship with the package, and the modules that register them."""

from dagster_dataops.library import GROUPS

__all__ = ["GROUPS"]
