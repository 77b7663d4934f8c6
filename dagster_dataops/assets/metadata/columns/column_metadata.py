"""Column metadata: schema and lineage of the columns of a result.

Dagster shows its own metadata keys in the column panel and the catalog. Its open-source UI does not
draw column lineage, so a Markdown table shows it too.
"""

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.columns.column_lineage import (
    DROPPED,
    ColumnOrigin,
    ColumnTracer,
    KeyedDatasets,
    as_dagster,
)
from dagster_dataops.assets.metadata.columns.column_schema import (
    ColumnSchema,
    schema_of,
    with_texts,
)
from dagster_dataops.assets.metadata.columns.column_texts import texts_of
from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_keys import COLUMN_LINEAGE, COLUMN_SCHEMA, COLUMNS
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import DataOpsError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.definition.operator import Operator

_ROWS: Final = 40
_logger = logging.getLogger("dagster_dataops")


def column_metadata(
    operator: Operator,
    upstream: KeyedDatasets,
    result: JsonlDataset,
    texts: Mapping[str, str] | None = None,
) -> dict[str, dg.MetadataValue[Any]]:
    """Return column schema, column lineage and a table of both.

    It is empty for an artefact or an export, and if a file is unreadable.

    It takes a few milliseconds for any size, because only samples are read.

    ``texts`` say what columns are; by default the operator's docstring does.
    """
    options, spec = operator.__dataops__.options, operator.__dataops__.spec
    if spec.kind.holds_files:
        return {}
    try:
        schema = schema_of(result)
        origins = ColumnTracer(options, upstream, result, spec.origin).trace(schema.columns)
    except (DataOpsError, OSError) as error:  # the result is valid without the metadata
        _logger.warning("no columns are shown of %s: %s", result.location, error)
        return {}
    if texts is None:
        texts = {entry.column: entry.text for entry in texts_of(operator)}
    metadata: dict[str, dg.MetadataValue[Any]] = {
        COLUMN_SCHEMA: dg.MetadataValue.table_schema(with_texts(schema.table_schema(), texts))
    }
    if upstream:
        lineage = as_dagster(origins)
        metadata[COLUMN_LINEAGE] = dg.MetadataValue.column_lineage(lineage)
    metadata[COLUMNS] = dg.MetadataValue.md(columns_table(schema, origins))
    return metadata


def schema_metadata(
    dataset: JsonlDataset, texts: Mapping[str, str] = MappingProxyType({})
) -> dict[str, dg.MetadataValue[Any]]:
    """Return the column schema of a file, such as a source; empty if the file is unreadable."""
    try:
        schema = schema_of(dataset)
    except (DataOpsError, OSError):
        return {}
    described = with_texts(schema.table_schema(), texts)
    return {COLUMN_SCHEMA: dg.MetadataValue.table_schema(described)}


def columns_table(schema: ColumnSchema, origins: Sequence[ColumnOrigin]) -> str:
    """Return a Markdown table of column, type, origin and change."""
    if not origins:
        return "_no columns_"
    shown = origins[:_ROWS]
    several = len({asset for origin in origins for asset, _ in origin.origins}) > 1
    rows = [
        (origin.column, _type(schema, origin), _sources(origin, several=several), origin.note)
        for origin in shown
    ]
    hidden = len(origins) - len(shown)
    more = f"and {counted(hidden, 'more columns')}; " if hidden else ""
    return table(["column", "type", "from", "note"], rows, more + schema.coverage)


def _type(schema: ColumnSchema, origin: ColumnOrigin) -> str:
    column = schema.columns.get(origin.column)
    return "" if column is None or origin.note == DROPPED else column.type


def _sources(origin: ColumnOrigin, *, several: bool) -> str:
    """Return the origin keys; for several assets, prefixed with the last part of the asset key."""
    if not several:
        return ", ".join(key for _, key in origin.origins)
    return ", ".join(f"{asset.path[-1]}.{key}" for asset, key in origin.origins)
