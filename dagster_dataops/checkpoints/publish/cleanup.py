"""Remove the checkpoints of a published run: rename them at once, then delete them.

Large or many files are deleted in the background. After a crash in between they stay in a separate
folder, and the next run deletes it.
"""

import errno
import os
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.datasets.durable_files import make_folder, storage
from dagster_dataops.errors import StorageError
from dagster_dataops.foundation.concurrency.background import deleting

_FEW_FILES: Final = 20
_FEW_BYTES: Final = 1 << 20


def remove_checkpoints(folder: NodeFolder) -> None:
    """Move every checkpoint of a node to the folder of removed files.

    Raises:
        StorageError: The checkpoints cannot be moved.
    """
    checkpoints, removed = folder.checkpoints, _removed(folder)
    with storage(checkpoints, "remove the checkpoints of the published run"):
        _unlink_shared(checkpoints)
        if not checkpoints.is_symlink() and _renamed(checkpoints, removed):
            return
        while checkpoints.exists():
            # The background deletion of an earlier run may delete the folder at any moment.
            try:
                make_folder(removed)
            except StorageError as error:
                if os.path.lexists(removed) or not isinstance(error.__cause__, FileExistsError):
                    raise
            with suppress(FileNotFoundError):
                checkpoints.rename(_free_name(removed))


def delete_removed(folder: NodeFolder) -> None:
    """Delete the files that this and earlier runs removed, in the background if that takes time."""
    removed = _removed(folder)
    if not removed.exists():
        return
    delete = partial(shutil.rmtree, removed, ignore_errors=True)
    if _is_small(removed):
        delete()
    else:
        deleting.run(delete)


def _is_small(removed: Path) -> bool:
    """Return whether a folder has at most a few small files: a thread would take longer."""
    files = size = 0
    with suppress(OSError):  # the background deletion of an earlier run may delete it
        for where, _, names in os.walk(removed):
            files += len(names)
            if files > _FEW_FILES:
                return False
            size += sum((Path(where) / name).lstat().st_size for name in names)
    return size <= _FEW_BYTES


def _renamed(checkpoints: Path, removed: Path) -> bool:
    """Rename a folder unless a folder with files has the new name; return whether it is gone."""
    try:
        checkpoints.rename(removed)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _removed(folder: NodeFolder) -> Path:
    return folder.path / ".removed"


def _unlink_shared(checkpoints: Path) -> None:
    """Delete files that have another name, for example that of the result.

    This frees no space and takes no time. A later deletion would set the change time of the
    published file, as an edit does.
    """
    for where, _, names in os.walk(checkpoints):
        for path in (Path(where) / name for name in names):
            if path.lstat().st_nlink > 1:
                path.unlink()


def _free_name(removed: Path) -> Path:
    number = 0
    while os.path.lexists(name := removed / str(number)):
        number += 1
    return name
