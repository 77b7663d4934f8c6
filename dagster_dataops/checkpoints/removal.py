"""Removal: what is no longer wanted goes out of the way at once, and is deleted beside the work.

Much is moved to a folder of its own first, so that a crash leaves it where the next run finds it.
What is deleted in no time is deleted where it is.
"""

import os
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from dagster_dataops.checkpoints.manifest import NodeFolder
from dagster_dataops.datasets.background import deleting
from dagster_dataops.datasets.files import make_folder, storage

_QUICKLY_DELETED: Final = 16 << 20


class Removal:
    """What one node has to delete.

    Args:
        folder: The node's folder.
    """

    def __init__(self, folder: NodeFolder) -> None:
        self._checkpoints = folder.checkpoints
        self._removed = folder.path / ".removed"

    def spare(self, path: Path) -> None:
        """Keep the content of ``path`` until `finish`, though another file takes its place.

        Replacing a large file deletes it, and that would be waited for.
        """
        with suppress(OSError):  # no links here: then it is waited for
            if path.stat().st_size > _QUICKLY_DELETED:
                self._removed.mkdir(exist_ok=True)
                os.link(path, self._free_name())

    def remove_checkpoints(self) -> None:
        """Have every checkpoint of the node gone."""
        with storage(self._checkpoints, "remove the checkpoints of the published run"):
            if self._checkpoints.exists() and _bytes_freed(self._checkpoints) <= _QUICKLY_DELETED:
                shutil.rmtree(self._checkpoints)
            while self._checkpoints.exists():
                make_folder(self._removed)
                # Whoever deletes for an earlier run may just be through, and take the folder away.
                with suppress(FileNotFoundError):
                    self._checkpoints.rename(self._free_name())

    def _free_name(self) -> Path:
        number = 0
        while os.path.lexists(name := self._removed / str(number)):
            number += 1
        return name

    def finish(self) -> None:
        """Delete what has been removed, now or before; nobody waits for much of it."""
        if not self._removed.exists():
            return
        delete = partial(shutil.rmtree, self._removed, ignore_errors=True)
        if _bytes_freed(self._removed) > _QUICKLY_DELETED:
            deleting.run(delete)
        else:
            delete()


def _bytes_freed(folder: Path) -> int:
    """Return how much room the files below ``folder`` take that have no other name."""
    freed = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                status = (Path(where) / name).lstat()
                freed += status.st_size if status.st_nlink == 1 else 0
    return freed
