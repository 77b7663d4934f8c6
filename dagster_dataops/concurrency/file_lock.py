"""Lock a file for the length of a block, against all other processes."""

import fcntl


class locked:  # noqa: N801 - used like a statement; a generator takes three times as long
    """Hold the lock of an open file in the block; wait for it first.

    It ends with the block, even if a process that was forked meanwhile has the file open.

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
