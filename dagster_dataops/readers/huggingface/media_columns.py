"""Images, sounds and other files in columns of Hugging Face datasets, as files of records."""

from collections.abc import Mapping
from typing import Any, Final

import orjson
import pyarrow as pa

from dagster_dataops.datasets.file_values.file_keeper import File
from dagster_dataops.datasets.file_values.media_types import type_of_content, type_of_name
from dagster_dataops.datasets.file_values.reference import FileReference
from dagster_dataops.readers.arrow.arrow_values import Conversion, nullable

_KINDS: Final = frozenset({"Image", "Audio", "Video", "Pdf", "Nifti"})
_METADATA: Final = b"huggingface"


def media_columns(schema: pa.Schema) -> dict[str, Conversion]:
    """Return how values of columns with files, or with lists of files, become files.

    Args:
        schema: The schema of a table, with the features of a dataset as metadata.

    Returns:
        The conversions by column: bytes become a `File`, a path alone the reference to it.
    """
    columns: dict[str, Conversion] = {}
    for name, feature in _features(schema).items():
        if schema.names.count(name) == 1:
            conversion = _conversion(schema.field(name).type, feature)
            if conversion is not None:
                columns[name] = conversion
    return columns


def _features(schema: pa.Schema) -> Mapping[str, Any]:
    """Return the features of a schema by column; none if it has no such metadata."""
    try:
        features = orjson.loads((schema.metadata or {})[_METADATA])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    return features if isinstance(features, dict) else {}


def _conversion(kind: Any, feature: object) -> Conversion | None:
    if isinstance(feature, list) and len(feature) == 1:  # a list, as earlier versions wrote it
        feature = {"_type": "List", "feature": feature[0]}
    if not isinstance(feature, dict):
        return None
    if feature.get("_type") in _KINDS:
        return Conversion(kind, _file) if _holds_files(kind) else None
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return None
    inside = _conversion(kind.value_type, feature.get("feature"))
    if inside is None:
        return None
    make = nullable(inside.convert)
    return Conversion(kind, lambda values: [make(value) for value in values])


def _holds_files(kind: Any) -> bool:
    return pa.types.is_struct(kind) and {field.name for field in kind} == {"bytes", "path"}


def _file(value: Mapping[str, Any]) -> File | dict[str, Any] | None:
    """Return the file of a value; ``None`` if it has neither bytes nor a path."""
    data, path = value["bytes"], value["path"]
    if data is not None:
        named = type_of_name(path) if path else None
        return File(data, type_of_content(data) or named or "")
    return None if path is None else FileReference.of(path, "path").to_json()
