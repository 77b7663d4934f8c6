"""Heartbeat: shared memory in which a worker shows its parent the current record.

Writing takes no system call, and the parent can read it while the worker is stuck.
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
    """Memory that a worker and its parent share.

    Args:
        descriptor: Descriptor of existing memory; by default new memory is created.

    Attributes:
        descriptor: Descriptor of the memory, for the worker.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            descriptor = _new_memory()
            os.ftruncate(descriptor, _SIZE)
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, _SIZE)

    def announce(self, offset: int) -> None:
        """Write the byte position of the next record."""
        _OFFSET.pack_into(self._memory, 0, offset)

    def around(self, forward: Forward) -> Forward:
        """Return ``forward``, writing the time at which each call starts."""

        def timed(record: Record) -> object:
            _SINCE.pack_into(self._memory, _OFFSET.size, time.monotonic())
            try:
                return forward(record)
            finally:
                _SINCE.pack_into(self._memory, _OFFSET.size, 0.0)

        return timed

    def pause(self, waits: bool) -> None:  # noqa: FBT001 - a callback
        """Show no call while the current one waits; then show that it starts again."""
        _SINCE.pack_into(self._memory, _OFFSET.size, 0.0 if waits else time.monotonic())

    def read(self) -> tuple[int, float]:
        """Return the byte position of the latest record, and when its call started (or 0)."""
        offset: int = _OFFSET.unpack_from(self._memory, 0)[0]
        since: float = _SINCE.unpack_from(self._memory, _OFFSET.size)[0]
        return offset, since

    def close(self) -> None:
        """Close the memory."""
        self._memory.close()
        os.close(self.descriptor)


def _new_memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("dataops-heartbeat", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
