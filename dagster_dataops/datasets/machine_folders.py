"""Folders for files that only one process of this machine needs, deleted when it ends.

A process that is killed leaves its folder. The next one that makes such a folder deletes it: a lock
tells which folders are in use.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from dagster_dataops.datasets.durable_files import make_folder, storage
from dagster_dataops.foundation.concurrency.file_lock import lock_at_once, locked_file, unused
from dagster_dataops.foundation.places.private_folders import private_folder

_LOCK: Final = ".lock"


@contextmanager
def machine_folder(kind: str, prefix: str) -> Iterator[Path]:
    """Yield a new folder in the temporary folder of this machine, with a hidden file for its lock.

    Args:
        kind: The name of the folder with all folders of this kind, see `private_folder`.
        prefix: How the name of the new folder begins.

    Raises:
        StorageError: The disk refuses.
    """
    folder = private_folder(kind)
    with storage(folder, "create a folder in it"), locked_file(folder / _LOCK):
        _remove_left(folder)
        mine = folder / f"{prefix}-{os.getpid()}-{os.urandom(4).hex()}"
        make_folder(mine)
        descriptor = os.open(mine / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        lock_at_once(descriptor)  # before another process looks at it
    try:
        yield mine
    finally:
        shutil.rmtree(mine, ignore_errors=True)
        os.close(descriptor)


def _remove_left(folder: Path) -> None:
    """Delete the folders of processes that have ended without deleting them."""
    for lock in folder.glob(f"*/{_LOCK}"):
        with suppress(OSError), unused(lock) as free:
            if free:
                shutil.rmtree(lock.parent, ignore_errors=True)
