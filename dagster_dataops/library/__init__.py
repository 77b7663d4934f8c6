"""Operators that ship with the package, loaded when a group of them is first asked for."""

import dagster_dataops.combine  # registers its group
from dagster_dataops.library import deduplication, near_duplicates, text

__all__ = ["deduplication", "near_duplicates", "text"]
