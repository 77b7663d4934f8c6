"""File descriptors of local files for reading."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dagster_dataops.errors import StreamSourceError


def open_descriptor(path: str) -> int:
    """Open a file and return its descriptor; the caller closes it.

    Raises:
        StreamSourceError: The file cannot be opened.
    """
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StreamSourceError(path, f"cannot be read: {error.strerror}") from error


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
