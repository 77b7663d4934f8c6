"""StepScratch: files that one step needs for itself alone, whoever else works on the asset."""

import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.errors import DataOpsError

_PREFIX: Final = ".upstream-"  # no asset's folder: a leading dot is escaped in those
_STALE_SECONDS: Final = 60.0  # a younger one may be about to be locked


class StepScratch:
    """A folder in an asset's, of one step alone, made when it is first asked for.

    An orphaned step may still read its files while the next attempt writes its own: every step
    has another folder, and locks it. Those that nobody locks any more, since their steps were
    killed, are deleted by the next step that makes one.

    Args:
        folder: Of the asset.
        run: Whose step it is, as the lock names it.
    """

    def __init__(self, folder: NodeFolder, run: str) -> None:
        self._folder = folder
        self._run = run
        self._lock: FolderLock | None = None
        self._path = folder.path / f"{_PREFIX}{secrets.token_hex(8)}"
        self._files = 0

    def place(self) -> Path:
        """Return where to write the next file."""
        if self._lock is None:
            self._delete_stale()
            self._lock = FolderLock(self._path, self._run, 0.0)
        self._files += 1
        return self._path / f"{self._folder.name}_upstream_{self._files}.jsonl"

    def delete(self) -> None:
        """Delete all of them."""
        if self._lock is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            self._lock.release()
            self._lock = None

    def _delete_stale(self) -> None:
        for path in self._folder.path.glob(f"{_PREFIX}*"):
            with suppress(OSError, DataOpsError):  # in use, or another step deletes it
                if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                    lock = FolderLock(path, self._run, 0.0)
                    shutil.rmtree(path, ignore_errors=True)
                    lock.release()
