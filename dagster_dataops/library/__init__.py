"""Operators that ship with the package, imported when an unknown operator is requested."""

from dagster_dataops.combine import stream_operators as combination
from dagster_dataops.library import deduplication, near_duplicates, text_cleaning

__all__ = ["combination", "deduplication", "near_duplicates", "text_cleaning"]
