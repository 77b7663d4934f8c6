"""Metadata that needs all records of a result."""

from collections.abc import Mapping, Sequence
from typing import Any

from dagster_dataops.assets.metadata.column_schema import whole_schema
from dagster_dataops.datasets.dataset import JsonlDataset


def count_rows(datasets: Sequence[JsonlDataset]) -> Mapping[str, Any]:
    """Return the number of records as ``dagster/row_count``; files without a count are read."""
    known = [data.rows if data.rows is not None else sum(1 for _ in data) for data in datasets]
    return {"dagster/row_count": sum(known)} if datasets else {}


def column_schema(datasets: Sequence[JsonlDataset]) -> Mapping[str, Any]:
    """Return ``dagster/column_schema`` with types and shares from all records."""
    return {"dagster/column_schema": whole_schema(datasets).table_schema()} if datasets else {}
