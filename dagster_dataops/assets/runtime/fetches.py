"""What is costly to know of results: it is found by reading all of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from dagster_dataops.assets.metadata.column_schema import whole_schema
from dagster_dataops.datasets.dataset import JsonlDataset


def count_rows(datasets: Sequence[JsonlDataset]) -> Mapping[str, Any]:
    """Return the number of records under Dagster's key, counted where it is not known."""
    known = [data.rows if data.rows is not None else sum(1 for _ in data) for data in datasets]
    return {"dagster/row_count": sum(known)} if datasets else {}


def column_schema(datasets: Sequence[JsonlDataset]) -> Mapping[str, Any]:
    """Return the columns under Dagster's key, with the types and shares of all records."""
    return {"dagster/column_schema": whole_schema(datasets).table_schema()} if datasets else {}
