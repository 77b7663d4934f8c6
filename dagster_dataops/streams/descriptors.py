"""Plain files of this machine."""

import os
from typing import Final

import xxhash

from dagster_dataops.errors import StreamSourceError

_LOOKED_AT: Final = 64 << 10


def descriptor_on(path: str) -> int:
    """Return a descriptor on a file, to be closed by the caller.

    Raises:
        StreamSourceError: The file cannot be opened.
    """
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StreamSourceError(path, f"cannot be read: {error.strerror}") from error


class opened:  # noqa: N801 - used like a function
    """A descriptor on a file for as long as a block lasts.

    Raises:
        StreamSourceError: The file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> int:
        self._descriptor = descriptor_on(self._path)
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def file_identity(path: str) -> object:
    """Return what tells the content of a file from others: its length, beginning and end.

    Raises:
        StreamSourceError: It cannot be read.
    """
    with opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        try:
            ends = [os.pread(descriptor, _LOOKED_AT, at) for at in (0, max(0, size - _LOOKED_AT))]
        except OSError as error:
            raise StreamSourceError(path, f"cannot be read: {error.strerror}") from error
    return [size, *map(xxhash.xxh3_64_hexdigest, ends)]
