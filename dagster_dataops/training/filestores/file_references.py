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
        parts: The parts to replace, such as ``["jpg"]``; ``None`` for all that are bytes.

    Raises:
        UnfitRecordError: It is not known in which file a part is.
    """
    made = dict(sample)
    for part, value in sample.items():
        if isinstance(value, bytes) and (parts is None or part in parts):
            made[part] = _reference(sample, part, value).to_json()
    return made


def with_file_contents(
    record: Mapping[str, Any], columns: Collection[str] | None = None
) -> dict[str, Any]:
    """Return a record with the bytes of files in place of references, as crude samples have them.

    Args:
        record: The record.
        columns: The columns to replace; ``None`` for all that hold a reference.

    Raises:
        FileError: A file cannot be read, or is another one.
    """
    made = dict(record)
    for column, value in record.items():
        is_chosen = is_reference(value) if columns is None else column in columns
        if is_chosen:
            made[column] = FileReference.of(value, f"column {column!r}").read()
    return made


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
