"""Heartbeat: what a worker tells of the record it is at, in memory that its parent reads.

It costs a worker no system call, and can be read of one that is stuck.
"""

import mmap
import os
import struct
import tempfile
import time
from typing import Final

from dagster_dataops.execution.timeouts.record_timeout import Forward
from dagster_dataops.records import Record

_OFFSET: Final = struct.Struct("<Q")
_SINCE: Final = struct.Struct("<d")
_SIZE: Final = _OFFSET.size + _SINCE.size


class Heartbeat:
    """The memory that a worker and its parent share.

    Args:
        descriptor: Of memory made before; without it new memory is made.

    Attributes:
        descriptor: Of the memory, for the worker.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            descriptor = _new_memory()
            os.ftruncate(descriptor, _SIZE)
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, _SIZE)

    def announce(self, offset: int) -> None:
        """Tell that the record at byte ``offset`` of the input comes next."""
        _OFFSET.pack_into(self._memory, 0, offset)

    def around(self, forward: Forward) -> Forward:
        """Return ``forward``, telling since when it is at work."""

        def timed(record: Record) -> object:
            _SINCE.pack_into(self._memory, _OFFSET.size, time.monotonic())
            try:
                return forward(record)
            finally:
                _SINCE.pack_into(self._memory, _OFFSET.size, 0.0)

        return timed

    def read(self) -> tuple[int, float]:
        """Return the latest offset, and since when (a monotonic time) it is worked on; or 0."""
        offset: int = _OFFSET.unpack_from(self._memory, 0)[0]
        since: float = _SINCE.unpack_from(self._memory, _OFFSET.size)[0]
        return offset, since

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()
        os.close(self.descriptor)


def _new_memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("dataops-heartbeat", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
