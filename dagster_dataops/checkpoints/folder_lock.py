"""FolderLock: one exclusive lock for each folder, so that two runs never write at once.

The lock is a ``flock``. The system releases it when the process ends, so a killed run leaves no
stale lock. A forked child inherits the lock and closes it at once, even a child forked by an
operator. The lock file names the holder. Some shared file systems lock for one machine only. There
a second holder overwrites the name, by which the first one finds out and ends.
"""

import errno
import os
import time
import weakref
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import orjson

from dagster_dataops.datasets.durable_files import make_folder_durably, storage
from dagster_dataops.errors import FolderLockedError, StorageError
from dagster_dataops.foundation.concurrency.file_lock import lock_at_once

LOCK_FILE: Final = ".lock"  # in every folder that a run has locked
_POLL_SECONDS: Final = 0.05
_LONGEST: Final = 4096  # bytes of the lock file that are read
_NO_LOCKS: Final = frozenset(
    {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}
)


class FolderLock:
    """An exclusive lock on a folder, held from construction until `release`.

    Args:
        folder: The folder to lock; created if it is missing.
        run: Name of this run, for the error messages of other runs.
        wait_seconds: Seconds to wait for a run that may be ending.

    Raises:
        FolderLockedError: Another run holds the lock; the error names host, process and run.
        StorageError: The lock file cannot be written, or the file system does not support locks.
    """

    def __init__(self, folder: Path, run: str, wait_seconds: float) -> None:
        make_folder_durably(folder)
        self.path = folder / LOCK_FILE
        with storage(self.path, "open the lock file"):
            # Do not follow a link: it could point to another file, which would be overwritten.
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self.descriptor = os.open(self.path, flags, 0o666)
        self._holder_entry = b""
        _HELD.add(self)
        try:
            self._wait(folder, wait_seconds)
            self.check()
            self._write_holder(run)
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """Check that no other run holds the lock, of this folder or of a new one in its place.

        Raises:
            StorageError: The lock file is not the file that this run has locked, or names another
                run.
        """
        with storage(self.path, "find the lock file"):
            ours, there = os.fstat(self.descriptor), self.path.stat()
        if not os.path.samestat(ours, there):
            reason = "the folder was removed or replaced while this run was at work in it"
            raise StorageError(str(self.path.parent), "go on", reason)
        with storage(self.path, "read the lock file"), self.path.open("rb") as file:
            head = file.read(_LONGEST)  # opened anew: a shared file system then asks its server
        if not head.startswith(self._holder_entry):
            reason = (
                f"{_holder_in(head)} has locked the folder too: locks of this file system do not "
                "hold between machines; mount it with locks, or run on one machine at a time"
            )
            raise StorageError(str(self.path.parent), "go on", reason)

    def _write_holder(self, run: str) -> None:
        holder = {
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "run": run.encode(errors="backslashreplace").decode(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with storage(self.path, "write the lock file"):
            # Overwrite the entry of the last holder. Truncating the file would wait for the disk.
            self._holder_entry = orjson.dumps(holder)
            before = os.fstat(self.descriptor).st_size
            os.pwrite(self.descriptor, self._holder_entry.ljust(min(before, _LONGEST)), 0)

    def _wait(self, folder: Path, wait_seconds: float) -> None:
        began = time.monotonic()
        while True:
            try:
                if lock_at_once(self.descriptor):
                    return
            except OSError as error:
                raise _unlockable(folder, error) from error
            waited = time.monotonic() - began
            if waited >= wait_seconds:
                raise FolderLockedError(str(folder), self._holder(), waited)
            time.sleep(_POLL_SECONDS)

    def _holder(self) -> str:
        with storage(self.path, "read the holder of the lock"):
            return _holder_in(os.pread(self.descriptor, _LONGEST, 0))

    def release(self) -> None:
        """Release the lock; safe to call twice."""
        descriptor, self.descriptor = self.descriptor, -1
        _HELD.discard(self)
        if descriptor >= 0:
            with suppress(OSError):  # closed anyway; its number may be in use again
                os.close(descriptor)

    def _forget(self) -> None:
        """Close the lock in a forked child, once: the child may use its number again."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _holder_in(data: bytes) -> str:
    """Return the holder that a lock file names, in words."""
    try:
        holder = orjson.loads(data)
        return (
            f"run {holder['run']} (process {holder['pid']} on {holder['host']}, "
            f"since {holder['since']})"
        )
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "a run that has not written its name yet"


def _unlockable(folder: Path, error: OSError) -> StorageError:
    reason = error.strerror or str(error)
    if error.errno in _NO_LOCKS:
        reason += (
            " (flock does not work on this file system, and without it two runs could write at "
            "once; use a root on another file system, or mount this one with locks)"
        )
    return StorageError(str(folder), "lock the folder", reason)


_HELD: "Final[weakref.WeakSet[FolderLock]]" = weakref.WeakSet()


def _forget_all() -> None:
    for lock in list(_HELD):
        lock._forget()  # noqa: SLF001 - of this module


os.register_at_fork(after_in_child=_forget_all)
