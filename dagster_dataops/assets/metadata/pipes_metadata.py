"""Metadata of Dagster in the form of Dagster Pipes, whose processes do not know Dagster's types."""

from collections.abc import Mapping
from typing import Any, Final

import dagster as dg

_KINDS: Final[Mapping[type[dg.MetadataValue[Any]], str]] = {
    dg.BoolMetadataValue: "bool",
    dg.DagsterRunMetadataValue: "dagster_run",
    dg.FloatMetadataValue: "float",
    dg.IntMetadataValue: "int",
    dg.JsonMetadataValue: "json",
    dg.MarkdownMetadataValue: "md",
    dg.NotebookMetadataValue: "notebook",
    dg.NullMetadataValue: "null",
    dg.PathMetadataValue: "path",
    dg.TextMetadataValue: "text",
    dg.TimestampMetadataValue: "timestamp",
    dg.UrlMetadataValue: "url",
}


def pipes_metadata(metadata: Mapping[str, dg.MetadataValue[Any]]) -> dict[str, Any]:
    """Return metadata as the functions of Dagster Pipes that report it take it.

    A value of a type that Pipes does not have becomes a text.
    """
    return {name: _value(value) for name, value in metadata.items()}


def _value(value: dg.MetadataValue[Any]) -> dict[str, Any]:
    raw: object = str(value.value)
    kind = "text"
    if type(value) in _KINDS:
        kind, raw = _KINDS[type(value)], value.value
    elif isinstance(value, dg.DagsterAssetMetadataValue):
        kind, raw = "asset", value.asset_key.to_user_string()
    elif isinstance(value, dg.TableSchemaMetadataValue):
        kind, raw = "table_schema", {"columns": _columns(value.schema)}
    elif isinstance(value, dg.TableMetadataValue):
        records = [dict(record.data) for record in value.records]
        kind, raw = "table", {"records": records, "schema": _columns(value.schema)}
    elif isinstance(value, dg.TableColumnLineageMetadataValue):
        lineage = {name: _deps(deps) for name, deps in value.column_lineage.deps_by_column.items()}
        kind, raw = "table_column_lineage", {"deps_by_column": lineage}
    return {"type": kind, "raw_value": raw}


def _columns(schema: dg.TableSchema) -> list[dict[str, Any]]:
    return [
        {
            "name": column.name,
            "type": column.type,
            "description": column.description,
            "tags": dict(column.tags or {}),
            "constraints": {
                "nullable": column.constraints.nullable,
                "unique": column.constraints.unique,
                "other": list(column.constraints.other),
            },
        }
        for column in schema.columns
    ]


def _deps(deps: Any) -> list[dict[str, Any]]:
    return [{"asset_key": list(dep.asset_key.path), "column_name": dep.column_name} for dep in deps]
