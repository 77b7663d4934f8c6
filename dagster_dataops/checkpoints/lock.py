"""One exclusive lock a folder, so that two attempts never write at once.

``flock`` dies with its process, so a killed run leaves no stale lock; worker processes do not
inherit it. The file says who holds it.
"""

import fcntl
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import orjson

from dagster_dataops.datasets.files import make_folder, storage
from dagster_dataops.errors import FolderLockedError

_POLL_SECONDS: Final = 0.05


class FolderLock:
    """Held from construction until `release`.

    Args:
        folder: What to lock; made if missing.
        run: Who locks it, as others will read it.
        wait_seconds: How long to wait for a run that may be dying.

    Raises:
        FolderLockedError: Another run holds it; host, process and run are named.
    """

    def __init__(self, folder: Path, run: str, wait_seconds: float) -> None:
        make_folder(folder)
        self.path = folder / ".lock"
        with storage(self.path, "open the lock file"):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self.descriptor = os.open(self.path, flags, 0o666)
        try:
            self._wait(folder, wait_seconds)
            self._say_who(run)
        except BaseException:
            self.release()
            raise

    def _say_who(self, run: str) -> None:
        holder = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "run": run,
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with storage(self.path, "write the lock file"):
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, orjson.dumps(holder), 0)

    def _wait(self, folder: Path, wait_seconds: float) -> None:
        began = time.monotonic()
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waited = time.monotonic() - began
                if waited >= wait_seconds:
                    raise FolderLockedError(str(folder), self._holder(), waited) from None
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _holder(self) -> str:
        try:
            holder = orjson.loads(os.pread(self.descriptor, 4096, 0))
            return (
                f"run {holder['run']} (process {holder['pid']} on {holder['host']}, "
                f"since {holder['since']})"
            )
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return "a run that has not yet said who it is"

    def release(self) -> None:
        """Give the lock up; safe to call twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
