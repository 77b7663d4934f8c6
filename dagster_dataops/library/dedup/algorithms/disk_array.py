"""`disk_array`: an array of integers in a file, so that the system can free its memory."""

import mmap
import os
from pathlib import Path
from typing import Final

from dagster_dataops.datasets.durable_files import storage

_ITEM_BYTES: Final = 8


def disk_array(path: Path, count: int) -> memoryview:
    """Return an array of unsigned 64-bit integers, initially all zero, in a new file."""
    size = max(1, count) * _ITEM_BYTES
    with storage(path, "write"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _reserve(descriptor, size)
            return memoryview(mmap.mmap(descriptor, size)).cast("Q")
        finally:
            os.close(descriptor)


def _reserve(descriptor: int, size: int) -> None:
    """Reserve disk space, so that a full disk is an error here and no signal later."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.ftruncate(descriptor, size)
