"""`MemoryLimit`: the memory that the calls of an operator may add to their worker process."""

import errno
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_DATA_FIELD: Final = 5  # of /proc/self/statm: pages of data and stack
_PAGE_BYTES: Final = resource.getpagesize()


class MemoryLimit:
    """Limits the memory of this process to what it has now and ``megabytes`` more; Linux only.

    The limit is that of the kernel for private memory that can be written (``RLIMIT_DATA``):
    mapped files and reserved addresses do not count. What asks for more gets no memory: Python
    raises `MemoryError`, and most libraries in C or C++ end the process.

    Args:
        megabytes: The memory; 0 for no limit.
    """

    def __init__(self, megabytes: int) -> None:
        self._megabytes = megabytes if sys.platform == "linux" else 0
        self._before = 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Limit the memory during the block."""
        if not self._megabytes:
            yield
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        self._before = _data_bytes()
        wanted = self._before + (self._megabytes << 20)
        limits = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min([wanted, *limits]), hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))

    def reason(self, error: BaseException | None) -> str:
        """Return in words that an exception is due to the limit; empty if it is not."""
        lacks = isinstance(error, MemoryError) or (
            isinstance(error, OSError) and error.errno == errno.ENOMEM
        )
        return reached(self._megabytes) if lacks and self._megabytes else ""

    @property
    def is_half_used(self) -> bool:
        """Whether the calls so far have left more than half of the memory in use.

        Then a record may fail for what other records have left behind.
        """
        return bool(self._megabytes) and _data_bytes() - self._before > self._megabytes << 19


def reached(megabytes: int) -> str:
    """Return the reason of a failure, in words."""
    return (
        f"it needs more than its memory limit of {megabytes:,} MB; raise _max_worker_memory_mb, or "
        "leave the record out"
    )


def _data_bytes() -> int:
    with open("/proc/self/statm", "rb") as numbers:  # noqa: PTH123 - after every range
        return int(numbers.read().split()[_DATA_FIELD]) * _PAGE_BYTES
