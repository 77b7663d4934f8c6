"""StepScratch: temporary files of one step, beside the files of its asset."""

import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.errors import DataOpsError

_PREFIX: Final = ".upstream-"  # cannot be an asset's folder, where a leading dot is escaped
_STALE_SECONDS: Final = 60.0  # the step of a younger folder may not have locked it yet


class StepScratch:
    """A temporary folder of one step inside the folder of its asset, created on first use.

    Every step has its own locked folder, because an orphaned step may still read its files while
    the next attempt writes. Folders of killed steps, which have lost their locks, are deleted by
    the next step that creates one.

    Args:
        folder: The folder of the asset.
        run: The id of the run, which the lock names.
    """

    def __init__(self, folder: NodeFolder, run: str) -> None:
        self._folder = folder
        self._run = run
        self._lock: FolderLock | None = None
        self._path = folder.path / f"{_PREFIX}{secrets.token_hex(8)}"
        self._files = 0

    def place(self) -> Path:
        """Return the path of the next file to write."""
        if self._lock is None:
            self._delete_stale()
            self._lock = FolderLock(self._path, self._run, 0.0)
        self._files += 1
        return self._path / f"{self._folder.name}_upstream_{self._files}.jsonl"

    def delete(self) -> None:
        """Delete the folder with all files."""
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
