"""The check ``json_schema``."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from dagster_dataops.assets.checks.declared_check import DeclaredCheck, check_kind, declared
from dagster_dataops.assets.checks.inspectors import EachRecord
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.errors import ConfigurationError, MissingExtraError
from dagster_dataops.records import Record


@check_kind(
    {
        "type": ["string", "object"],
        "format": "path",
        "description": "A JSON Schema for every record, or the path of a JSON file that holds it, "
        "relative to the folder of the defs.yaml.",
        "examples": ["document.schema.json"],
    }
)
def json_schema(
    schema: Mapping[str, Any] | str | os.PathLike[str],
    *,
    name: str = "json_schema",
    severity: Severity | None = None,
    blocking: bool = False,
) -> DeclaredCheck:
    """Check that every record is valid by a JSON Schema: a mapping, or the path of a JSON file.

    Raises:
        MissingExtraError: The package that validates is not installed.
        ConfigurationError: The schema is not a JSON Schema.
    """
    content = schema if isinstance(schema, Mapping) else _read(Path(schema))
    validator = _validator(content)

    def problem(record: Record) -> tuple[str, Record] | None:
        if validator.is_valid(record):
            return None
        error = next(validator.iter_errors(record))
        where = ".".join(map(str, error.instance_path))
        return f"{where}: {error.message}" if where else str(error.message), record

    title = content.get("title")
    text = f"Every record is valid by the JSON Schema{f' {title!r}' if title else ''}."
    return declared(
        name, text, lambda: EachRecord("are not valid", problem), severity, blocking=blocking
    )


def _validator(schema: Mapping[str, Any]) -> Any:
    try:
        import jsonschema_rs
    except ImportError:
        raise MissingExtraError("a check by JSON Schema", "json-schema") from None
    try:
        return jsonschema_rs.validator_for(dict(schema))
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise ConfigurationError("json_schema", schema, f"a JSON Schema: {error}") from None


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        wanted = f"the path of a JSON file: {error}"
        raise ConfigurationError("json_schema", str(path), wanted) from None
    if not isinstance(content, dict):
        raise ConfigurationError("json_schema", str(path), "the path of a JSON object")
    return content
