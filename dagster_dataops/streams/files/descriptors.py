"""Descriptors: files of this machine, open for reading at any position."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dagster_dataops.errors import StreamSourceError


def descriptor_on(path: str) -> int:
    """Return a descriptor on a file, for the caller to close.

    Raises:
        StreamSourceError: It cannot be opened.
    """
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StreamSourceError(path, f"cannot be read: {error.strerror}") from error


@contextmanager
def opened(path: str) -> Iterator[int]:
    """Yield a descriptor on a file.

    Raises:
        StreamSourceError: It cannot be opened.
    """
    descriptor = descriptor_on(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
