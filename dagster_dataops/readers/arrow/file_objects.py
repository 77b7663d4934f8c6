"""Provide files to libraries that do their own reading."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from typing_extensions import override

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.locations import Location
from dagster_dataops.streams.files.remote import file_system, is_url, source_error

_BUFFER_BYTES: Final = 256 << 10


class ContentFile(io.RawIOBase):
    """A Python file over a content, starting at an offset.

    Args:
        content: The content, which the caller closes.
        offset: The offset of the first read.
    """

    def __init__(self, content: Content, offset: int = 0) -> None:
        super().__init__()
        self._content = content
        self._at = offset

    @override
    def readable(self) -> bool:
        return True

    @override
    def tell(self) -> int:
        return self._at

    @override
    def readinto(self, buffer: Any, /) -> int:
        part = self._content.read_at(len(buffer), self._at)
        if not part and self._content.failure is not None:
            raise self._content.failure
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


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
