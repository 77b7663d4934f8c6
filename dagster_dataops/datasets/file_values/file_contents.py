"""The content of the files that values of records name, for exports and loaders."""

from typing import Any

from dagster_dataops.datasets.file_values.media_types import ending_of_type, type_of_name
from dagster_dataops.datasets.file_values.reference import FileReference


def is_reference(value: object) -> bool:
    """Return whether a value is a reference to a file: a dict with the text ``file``."""
    return isinstance(value, dict) and isinstance(value.get("file"), str)


def bytes_and_path(value: object, where: str = "the value") -> dict[str, Any]:
    """Return the file that a value names as Hugging Face's images and audio have it.

    Args:
        value: A path or URL, or a reference.
        where: The place of the value, for errors.

    Returns:
        ``{"bytes": ..., "path": ...}``, with the name of the file as the path. A file that an
        operator has made is named by its digest, and gets the usual ending of its media type.

    Raises:
        FileError: The value names no file, or the file cannot be read, or is another one.
    """
    reference = FileReference.of(value, where)
    return {"bytes": reference.read(), "path": named_with_ending(reference)}


def named_with_ending(reference: FileReference) -> str:
    """Return the name of a file, with the ending of its media type if it has none."""
    if type_of_name(reference.file) is not None or not reference.media_type:
        return reference.name
    return reference.name + ending_of_type(reference.media_type)
