"""Descriptors: files of this machine, open for reading at any position."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dagster_dataops.errors import StreamSourceError


@contextmanager
def opened(path: str) -> Iterator[int]:
    """Yield a descriptor on a file.

    Raises:
        StreamSourceError: It cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StreamSourceError(path, f"cannot be read: {error.strerror}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)
