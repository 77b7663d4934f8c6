"""`RangeSource`: an open file that is read by byte ranges. A plain file is its descriptor."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TypeAlias

from dagster_dataops.foundation.places.file_state import FileState


class RangeSource(ABC):
    """An open file that is no plain file of this machine.

    Attributes:
        size: The size in bytes.
        name: Path or URL, for errors.
        fingerprint: The identity of the content that is known without reading it; else ``None``.
    """

    size: int
    name: str
    fingerprint: str | None = None

    @abstractmethod
    def read(self, start: int, length: int) -> bytes:
        """Return ``length`` bytes from ``start``; fewer only at the end.

        Raises:
            InputError: It was replaced or deleted, or its store cannot be reached.
            OSError: It cannot be read.
        """

    @abstractmethod
    def state(self) -> FileState:
        """Return the state of the file.

        Raises:
            OSError: It cannot be read any more.
        """

    def line_near(self, position: int) -> int | None:  # noqa: ARG002 - most know no line
        """Return a position near another at which a line begins, if it is known without reading."""
        return None

    def close(self) -> None:  # noqa: B027 - most keep nothing open
        """Close the file; call it once."""

    def expect(self, start: int, end: int) -> None:  # noqa: B027 - most have nothing to do
        """Prepare for reading bytes [start, end) in order."""


Readable: TypeAlias = int | RangeSource
"""An open file: the descriptor of a plain file, or another source of bytes."""


def read_range(source: Readable, start: int, length: int) -> bytes:
    """Return ``length`` bytes from ``start``; fewer only at the end of the file."""
    if not isinstance(source, int):
        return source.read(start, length)
    data = os.pread(source, length, start)
    if len(data) == length or not data:
        return data
    parts = [data]
    missing = length - len(data)
    while missing and (more := os.pread(source, missing, start + length - missing)):
        parts.append(more)
        missing -= len(more)
    return b"".join(parts)


def expect(source: Readable, start: int, end: int) -> None:
    """Announce that bytes [start, end) will be read in order; a store is asked for them at once."""
    if not isinstance(source, int):
        source.expect(start, end)


def read_blocks(source: Readable, size: int) -> Iterator[bytes]:
    """Yield the whole file, in blocks of ``size`` bytes."""
    start = 0
    while block := read_range(source, start, size):
        yield block
        start += len(block)


def size_of(source: Readable) -> int:
    """Return the size of an open file in bytes."""
    return os.fstat(source).st_size if isinstance(source, int) else source.size


def state_of(source: Readable) -> FileState:
    """Return the state of an open file.

    Raises:
        OSError: A part of it cannot be read any more.
    """
    return FileState.of(os.fstat(source)) if isinstance(source, int) else source.state()


def name_of(source: Readable) -> str:
    """Return path or URL of an open file, for errors."""
    if not isinstance(source, int):
        return source.name
    try:
        return os.readlink(f"/proc/self/fd/{source}")  # noqa: PTH115 - a text
    except OSError:
        return "file"


def close_readable(source: Readable) -> None:
    """Close a file."""
    if isinstance(source, int):
        os.close(source)
    else:
        source.close()
