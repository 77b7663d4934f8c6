"""What a result's columns hold, found by reading all of it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import dagster as dg

from dagster_dataops.datasets.dataset import JsonlDataset

_JSON_TYPES: Final = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


def count_rows(datasets: Sequence[JsonlDataset]) -> Mapping[str, Any]:
    """Return the number of records under Dagster's key, counted where it is not known."""
    known = [data.rows if data.rows is not None else sum(1 for _ in data) for data in datasets]
    return {"dagster/row_count": sum(known)} if datasets else {}


def column_schema(datasets: Sequence[JsonlDataset]) -> Mapping[str, Any]:
    """Return the columns under Dagster's key, in the order in which they first stand."""
    types: dict[str, dict[str, None]] = {}
    for dataset in datasets:
        for record in dataset:
            for name, value in record.items():
                types.setdefault(name, {})[_JSON_TYPES[type(value)]] = None
    columns = [dg.TableColumn(name, " | ".join(seen)) for name, seen in types.items()]
    return {"dagster/column_schema": dg.TableSchema(columns=columns)} if columns else {}
