"""The cache folder of indices: files are written whole, and swept when they were not used long.

The time of a file is that of its last use. A file that a process has open is locked, and stays.
"""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from dagster_dataops.errors import StorageError
from dagster_dataops.foundation.concurrency.file_lock import unused
from dagster_dataops.foundation.places.private_folders import private_folder

MAX_BYTES: Final = 10 << 30
_DAY: Final = 24 * 60 * 60
_MAX_UNUSED: Final = 30 * _DAY
_MARK: Final = ".swept"  # its time is that of the last sweep


def cache_folder() -> Path:
    """Return the folder of indices, which can be deleted at any time.

    Raises:
        StorageError: There is no home folder, and the folder in the temporary folder cannot be
            used.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(base) / "dagster_dataops" / "indices"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        try:
            folder = private_folder("dagster_dataops") / "indices"
            folder.mkdir(exist_ok=True)
        except OSError as error:
            reason = f"{error.strerror}; or set XDG_CACHE_HOME to a folder of this user"
            raise StorageError(str(error.filename), "keep indices there", reason) from None
    return folder


def publish(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under another name, then rename it."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".draft-", delete=False) as draft:
        pass
    try:
        write(Path(draft.name))
        Path(draft.name).replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(draft.name).unlink()


def mark_used(path: Path) -> None:
    """Set the time at which a file was last used to now."""
    with contextlib.suppress(OSError):  # missing, or of another user
        os.utime(path)


def locked(path: Path) -> int:
    """Return a descriptor that keeps a file from being swept until it is closed.

    Raises:
        FileNotFoundError: There is no such file.
    """
    descriptor = os.open(path, os.O_RDONLY)
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def sweep(folder: Path, max_bytes: int = MAX_BYTES) -> None:
    """Delete files that were not used for 30 days, and more if all are too large; once a day.

    Files that were used within a day stay.

    Args:
        folder: The cache folder.
        max_bytes: The largest size of all files; those that were used least recently are deleted.
    """
    mark, now = folder / _MARK, time.time()
    with contextlib.suppress(FileNotFoundError):
        if now - mark.stat().st_mtime < _DAY:
            return
    mark.touch()
    files = sorted(_files(folder))
    total = sum(size for _, size, _ in files)
    for used, size, path in files:
        age = now - used
        if age < _DAY or (age < _MAX_UNUSED and total <= max_bytes):
            return
        if _deleted(path):
            total -= size


def _files(folder: Path) -> Iterator[tuple[float, int, str]]:
    """Yield last use, size and path of each file, drafts of killed processes among them."""
    for entry in os.scandir(folder):
        with contextlib.suppress(FileNotFoundError):
            if entry.name != _MARK and entry.is_file():
                status = entry.stat()
                yield status.st_mtime, status.st_size, entry.path


def _deleted(path: str) -> bool:
    """Delete a file, unless a process has it open."""
    with contextlib.suppress(OSError), unused(Path(path)) as free:
        if free:
            Path(path).unlink()
            return True
    return False
