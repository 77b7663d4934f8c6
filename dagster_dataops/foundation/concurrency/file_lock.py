"""Lock files and folders against other processes."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dagster_dataops.foundation.override import override


class locked:  # noqa: N801 - used like a statement; a generator takes three times as long
    """Hold the lock of an open file in the block; wait for it first.

    The lock ends with the block, even if a process that was forked inside it has the file open.

    Raises:
        OSError: The file system has no locks.
    """

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)


class shared(locked):  # noqa: N801 - as `locked`
    """Hold a lock in the block that others may hold at the same time, but none as `locked`.

    Raises:
        OSError: The file system has no locks.
    """

    __slots__ = ()

    @override
    def __enter__(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)


@contextmanager
def locked_file(path: Path, lock: type[locked] = locked) -> Iterator[None]:
    """Hold the lock of a file in the block; wait for it first. A missing file is created.

    Args:
        path: The file. It must not be replaced or deleted.
        lock: `locked` or `shared`.

    Raises:
        OSError: The file cannot be opened, or the file system has no locks.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        with lock(descriptor):
            yield
    finally:
        os.close(descriptor)


def lock_at_once(descriptor: int) -> bool:
    """Lock an open file or folder until it is closed; return ``False`` if it is locked already.

    Raises:
        OSError: The file system has no locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def unused(path: Path) -> Iterator[bool]:
    """Yield whether no process has locked a file or folder; none can lock it inside the block.

    It counts as used if the file system has no locks.

    Raises:
        OSError: The path cannot be opened, or it is a link.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        try:
            free = lock_at_once(descriptor)
        except OSError:
            free = False
        yield free
    finally:
        os.close(descriptor)
