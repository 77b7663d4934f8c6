"""Lock a file for the length of a block, against all other processes."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def locked(descriptor: int) -> Iterator[None]:
    """Hold the lock of an open file in the block; wait for it first.

    Raises:
        OSError: The file system has no locks.
    """
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
