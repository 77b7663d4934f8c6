"""column_metadata: what the asset page shows of a result's columns, and where they come from.

Dagster's own keys serve its column panel and its catalogue. Its open-source UI draws no lineage of
columns, so the same is also there as a table to read.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.column_lineage import (
    DROPPED,
    ColumnOrigin,
    ColumnTracer,
    KeyedDatasets,
    as_dagster,
)
from dagster_dataops.assets.metadata.column_schema import Schema, schema_of
from dagster_dataops.assets.metadata.column_values import remember
from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_prefix import METADATA_PREFIX
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import DataOpsError
from dagster_dataops.operators.spec import OperatorKind

_ROWS: Final = 40
_logger = logging.getLogger("dagster_dataops")


def column_metadata(
    options: Mapping[str, Any],
    upstream: KeyedDatasets,
    result: JsonlDataset,
    kind: OperatorKind = "record",
) -> dict[str, dg.MetadataValue[Any]]:
    """Return column schema, column lineage and a readable table of both; empty if they cannot be.

    It costs some milliseconds, whatever the sizes: samples are looked at, never whole files.

    Args:
        options: The operator's; ``input_key`` and ``output_key`` count.
        upstream: Its inputs with their asset keys, in order.
        result: What it wrote.
        kind: The operator's kind.
    """
    try:
        schema = schema_of(result)
        tracer = ColumnTracer(options, upstream, result, kind)
        origins = tracer.trace(schema.columns)
        if not schema.left_out:
            remember(result, schema.columns, tracer.records)
    except (DataOpsError, OSError) as error:  # metadata is no reason for a result to fail
        _logger.warning("no columns are shown of %s: %s", result.path, error)
        return {}
    metadata: dict[str, dg.MetadataValue[Any]] = {
        "dagster/column_schema": dg.MetadataValue.table_schema(schema.table_schema())
    }
    if upstream:
        lineage = as_dagster(origins)
        metadata["dagster/column_lineage"] = dg.MetadataValue.column_lineage(lineage)
    metadata[f"{METADATA_PREFIX}/columns"] = dg.MetadataValue.md(columns_table(schema, origins))
    return metadata


def schema_metadata(dataset: JsonlDataset) -> dict[str, dg.MetadataValue[Any]]:
    """Return the column schema of what no operator made, such as a source; empty if it has none."""
    try:
        schema = schema_of(dataset)
    except (DataOpsError, OSError):
        return {}
    return {"dagster/column_schema": dg.MetadataValue.table_schema(schema.table_schema())}


def columns_table(schema: Schema, origins: Sequence[ColumnOrigin]) -> str:
    """Return column, type, where it comes from and what became of it, as a Markdown table."""
    if not origins:
        return "_no columns_"
    shown = origins[:_ROWS]
    several = len({asset for origin in origins for asset, _ in origin.origins}) > 1
    rows = [
        (origin.column, _type(schema, origin), _sources(origin, several=several), origin.note)
        for origin in shown
    ]
    hidden = len(origins) - len(shown)
    note = f"and {hidden:,} more columns; {schema.coverage}" if hidden else schema.coverage
    return table(["column", "type", "from", "note"], rows, note)


def _type(schema: Schema, origin: ColumnOrigin) -> str:
    column = schema.columns.get(origin.column)
    return "" if column is None or origin.note == DROPPED else column.type


def _sources(origin: ColumnOrigin, *, several: bool) -> str:
    """Return the keys it comes from; with their assets, by their last names, if these differ."""
    if not several:
        return ", ".join(key for _, key in origin.origins)
    return ", ".join(f"{asset.path[-1]}.{key}" for asset, key in origin.origins)
