"""File descriptors of local files for reading."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.foundation.places.file_state import FileState

_MAX_OPEN_FILES: Final = 256  # of one pool; many systems allow a process about 1,000
_CLOSED: Final = -1


@contextmanager
def naming_path(path: str) -> Iterator[None]:
    """Raise errors of the operating system as errors that name the file.

    Raises:
        StreamSourceError: The block raised an `OSError`.
    """
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
        self._descriptor = open_descriptor(path)
        pool.add(self)
        self.state = FileState.of(os.fstat(self._descriptor))

    def opened(self) -> int:
        """Return its descriptor, which is valid until another file of the pool is opened.

        Raises:
            StreamSourceError: The file cannot be opened, or has changed since it was first opened.
        """
        if self._descriptor == _CLOSED:
            self._descriptor = open_descriptor(self.path)
            self._pool.add(self)
            if not FileState.of(os.fstat(self._descriptor)).resembles(self.state):
                raise StreamSourceError(self.path, "was replaced or written while it was read")
        return self._descriptor

    def close(self) -> None:
        """Close the file until it is read again."""
        os.close(self._descriptor)
        self._descriptor = _CLOSED
