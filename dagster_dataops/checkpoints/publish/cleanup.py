"""Removal: what is no longer wanted goes out of the way at once, and is deleted beside the work.

Much is moved to a folder of its own first, so that a crash leaves it where the next run finds it.
What is deleted in no time is deleted where it is.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.concurrency.background import deleting
from dagster_dataops.datasets.durable_files import make_folder, storage

_QUICKLY_DELETED: Final = 16 << 20
_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Removal:
    """What one node has to delete.

    Args:
        folder: The node's folder.
    """

    def __init__(self, folder: NodeFolder) -> None:
        self._checkpoints = folder.checkpoints
        self._removed = folder.path / ".removed"
        self._spared: list[int] = []

    def spare(self, path: Path) -> None:
        """Keep the content of ``path`` open, as another file is about to take its place.

        Otherwise that would delete it and be waited for: some milliseconds even for a small file.
        Open files go with their process at the latest, however it ends.
        """
        with suppress(OSError):  # there is none, or it may not be read: then it is waited for
            self._spared.append(os.open(path, _READ))

    def remove_checkpoints(self) -> None:
        """Have every checkpoint of the node gone."""
        with storage(self._checkpoints, "remove the checkpoints of the published run"):
            if self._is_little():
                shutil.rmtree(self._checkpoints)
            self._unlink_links()
            while self._checkpoints.exists():
                make_folder(self._removed)
                # Whoever deletes for an earlier run may just be through, and take the folder away.
                with suppress(FileNotFoundError):
                    self._checkpoints.rename(self._free_name())

    def _unlink_links(self) -> None:
        """Delete at once what has another name, such as that of the result, which frees nothing.

        Later that would change the published file's time of change, as an edit does.
        """
        for path in _files(self._checkpoints):
            if path.lstat().st_nlink > 1:
                path.unlink()

    def _is_little(self) -> bool:
        """Whether there are checkpoints that are deleted in no time, in a folder of ours."""
        if self._checkpoints.is_symlink() or not self._checkpoints.exists():
            return False
        return _bytes_freed(self._checkpoints) <= _QUICKLY_DELETED

    def _free_name(self) -> Path:
        number = 0
        while os.path.lexists(name := self._removed / str(number)):
            number += 1
        return name

    def finish(self) -> None:
        """Delete what has been removed, now or before; nobody waits for much of it."""
        if self._spared:
            deleting.run(partial(_close, self._spared))
            self._spared = []
        if not self._removed.exists():
            return
        delete = partial(shutil.rmtree, self._removed, ignore_errors=True)
        if _bytes_freed(self._removed) > _QUICKLY_DELETED:
            deleting.run(delete)
        else:
            delete()


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _bytes_freed(folder: Path) -> int:
    """Return how much room the files below ``folder`` take that have no other name."""
    freed = 0
    for path in _files(folder):
        with suppress(OSError):
            status = path.lstat()
            freed += status.st_size if status.st_nlink == 1 else 0
    return freed


def _files(folder: Path) -> Iterator[Path]:
    return (Path(where) / name for where, _, names in os.walk(folder) for name in names)
