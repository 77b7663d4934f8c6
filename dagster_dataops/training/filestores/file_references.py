"""Convert crude samples to records that name files, and back."""

from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any

from dagster_dataops.datasets.file_values.file_contents import is_reference
from dagster_dataops.datasets.file_values.media_types import type_of_content, type_of_name
from dagster_dataops.datasets.file_values.reference import FileReference
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.records import SOURCES


def with_file_references(
    sample: Mapping[str, Any], parts: Collection[str] | None = None
) -> dict[str, Any]:
    """Return a crude sample with references in place of the bytes of its parts.

    A reference names the shard and the file in it, with size, digest and media type. Use it as
    ``crude(path).map(with_file_references)``.

    Args:
        sample: A sample that no cooker has changed.
        parts: The parts to replace, such as ``["jpg"]`` or ``"jpg"``; ``None`` for all that are
            bytes.

    Raises:
        UnfitRecordError: It is not known in which file a part is.
    """
    chosen = _names(parts, sample)
    return dict(sample) | {
        part: _reference(sample, part, value).to_json()
        for part, value in sample.items()
        if part in chosen and isinstance(value, bytes)
    }


def with_file_contents(
    record: Mapping[str, Any], columns: Collection[str] | None = None
) -> dict[str, Any]:
    """Return a record with the bytes of files in place of references, as crude samples have them.

    Args:
        record: The record.
        columns: The columns to replace, or a single one; ``None`` for all that hold a reference.

    Raises:
        FileError: A file cannot be read, or is another one.
    """
    with_references = [column for column, value in record.items() if is_reference(value)]
    chosen = _names(columns, with_references)
    return dict(record) | {
        column: FileReference.of(value, f"column {column!r}").read()
        for column, value in record.items()
        if column in chosen
    }


def _names(names: Collection[str] | None, every: Collection[str]) -> Collection[str]:
    """Return the given names, of which a text is a single one; without any, every name."""
    if names is None:
        return every
    return (names,) if isinstance(names, str) else names


def _reference(sample: Mapping[str, Any], part: str, data: bytes) -> FileReference:
    name = f"{sample.get('__key__')}.{part}"
    for source in sample.get(SOURCES) or ():
        if name in source["file_names"]:
            file = _place(source["dataset_path"], source["shard_name"], name)
            kind = type_of_content(data) or type_of_name(name)
            return FileReference(file, len(data), f"sha256:{sha256(data).hexdigest()}", kind)
    msg = f"part {part!r} of sample {sample.get('__key__')!r}: no source of the sample has {name!r}"
    raise UnfitRecordError(msg)


def _place(dataset: str, shard: str, name: str) -> str:
    if shard == dataset:  # a folder of files
        return f"{dataset}/{name}"
    if dataset.rpartition("/")[2] == shard:  # a jsonl file, or a single shard
        return f"{dataset}#{name}"
    return f"{dataset}/{shard}#{name}"
