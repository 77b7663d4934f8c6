"""File descriptors of local files for reading."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from dagster_dataops.errors import InputError, StreamSourceError
from dagster_dataops.foundation.places.opening import open_readable
from dagster_dataops.foundation.places.range_source import Readable, close_readable, state_of

_MAX_OPEN_FILES: Final = 256  # of one pool; many systems allow a process about 1,000
_CLOSED: Final = -1


@contextmanager
def naming_path(path: str) -> Iterator[None]:
    """Raise errors of the operating system as errors that name the file."""
    try:
        yield
    except OSError as error:
        raise StreamSourceError(path, f"cannot be read: {error.strerror}") from error


def open_descriptor(path: str) -> int:
    """Open a file and return its descriptor; the caller closes it.

    Raises:
        StreamSourceError: The file cannot be opened.
    """
    with naming_path(path):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


@contextmanager
def naming_text(path: str) -> Iterator[None]:
    """Raise errors of reading a file, perhaps a compressed result, as those of a stream."""
    try:
        with naming_path(path):
            yield
    except StreamSourceError:
        raise
    except InputError as error:
        raise StreamSourceError(path, error.reason) from error


def open_text(path: str) -> Readable:
    """Open a file of lines by its path; of a compressed result, its text.

    Raises:
        StreamSourceError: It cannot be opened, or is damaged.
    """
    with naming_text(path):
        return open_readable(Path(path))


def open_frames(path: str) -> Readable:
    """Open a compressed result by its path: its text.

    Raises:
        StreamSourceError: It cannot be opened, is damaged, or was cut off.
    """
    from dagster_dataops.foundation.places.framed_file import check_frames  # an extra

    source = open_text(path)
    try:
        with naming_text(path):
            check_frames(source, path)
    except StreamSourceError:
        close_readable(source)
        raise
    return source


@contextmanager
def opened_file(path: str) -> Iterator[int]:
    """Open a file and yield its descriptor.

    Raises:
        StreamSourceError: The file cannot be opened.
    """
    descriptor = open_descriptor(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class FilePool:
    """Files of which the last ones that were opened are kept open; all are closed at the end."""

    def __init__(self) -> None:
        self._open: deque[PooledFile] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            self._open.popleft().close()

    def add(self, file: "PooledFile") -> None:
        """Keep a file open. The one that was opened first is closed if there are too many."""
        self._open.append(file)
        if len(self._open) > _MAX_OPEN_FILES:
            self._open.popleft().close()


class PooledFile:
    """A file that is opened when it is read, and again after the pool closed it.

    Attributes:
        state: Its state when it was first opened.

    Raises:
        StreamSourceError: The file cannot be opened.
    """

    def __init__(self, path: str, pool: FilePool) -> None:
        self.path, self._pool = path, pool
        self._descriptor: Readable = open_text(path)
        pool.add(self)
        self.state = state_of(self._descriptor)

    def opened(self) -> Readable:
        """Return the open file, which is valid until another file of the pool is opened."""
        if self._descriptor == _CLOSED:
            self._descriptor = open_text(self.path)
            self._pool.add(self)
            if not state_of(self._descriptor).resembles(self.state):
                raise StreamSourceError(self.path, "was replaced or written while it was read")
        return self._descriptor

    def close(self) -> None:
        """Close the file until it is read again."""
        close_readable(self._descriptor)
        self._descriptor = _CLOSED
