"""Provide files to libraries that do their own reading."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.files.contents import ContentFile
from dagster_dataops.streams.files.locations import Location
from dagster_dataops.streams.files.remote import file_system, is_url, source_error

_BUFFER_BYTES: Final = 256 << 10


@contextmanager
def content_file(location: Location, offset: int = 0) -> Iterator[Any]:
    """Open a file for reading from an offset of its decompressed bytes to its end."""
    with location.opened() as content:
        file = io.BufferedReader(ContentFile(content, offset), _BUFFER_BYTES)
        with file:
            yield file


@contextmanager
def seekable(location: Location) -> Iterator[Any]:
    """Open a file for random access, as a path or as a Python file.

    Raises:
        StreamSourceError: The file is compressed or cannot be opened.
    """
    if location.compression is not None:
        reason = "is read at several positions, so it cannot be compressed; decompress it first"
        raise StreamSourceError(location.path, reason)
    if not is_url(location.path):
        location.size()  # raises an error if the file is missing
        yield location.path
        return
    system, path = file_system(location.path, location.storage_options)
    try:
        file = system.open(path, "rb")
    except Exception as error:
        raise source_error(location.path, error) from error
    with file:
        yield file
