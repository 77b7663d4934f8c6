"""Files that operators made, and that nothing below their root names any more.

Published results, kept versions, error files, artefacts and the checkpoints of unfinished runs are
searched for the names of files, as bytes. A file is deleted only if it is older than the grace
period, if no run works below the root, and if nothing there changed while it was searched.
"""

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from dagster_dataops.datasets.file_values.file_keeper import (
    DRAFT_ENDING,
    FILES,
    LOCK,
    name_of_content,
)
from dagster_dataops.errors import ConfigurationError, FolderLockedError
from dagster_dataops.foundation.concurrency.file_lock import locked, unused
from dagster_dataops.foundation.quantities import counted

GRACE_DAYS: Final = 7.0
_DAY_NS: Final = 86_400 * 10**9
_NAME: Final = re.compile(rb"files/([0-9a-f]{2})/([0-9a-f]{62})")
_SHELF: Final = re.compile(r"[0-9a-f]{2}")
_NAME_BYTES: Final = len(name_of_content("0" * 64))
_BLOCK_BYTES: Final = 8 << 20
_LOCKS: Final = ".lock"  # in the folder of a node


class UnnamedFile(NamedTuple):
    """A stored file that nothing names, or a draft that a kill has left.

    Attributes:
        path: The file.
        size_bytes: Its size.
    """

    path: Path
    size_bytes: int


def prune_files(
    root: Path, days: float = GRACE_DAYS, also: Sequence[Path] = (), *, delete: bool = False
) -> tuple[list[UnnamedFile], str]:
    """Return the unnamed files below a root, with a text that lists them.

    Args:
        root: The root of the results, a folder of this machine.
        days: The grace period: files that were stored, or made again, since then are kept. It must
            be longer than a run takes.
        also: Other folders and files whose records name files of the root, such as other roots.
        delete: Delete the files; by default nothing is deleted.

    Raises:
        ConfigurationError: There is no such folder, or the grace period is negative.
        FolderLockedError: A run works below the root, or has changed results there meanwhile.
    """
    if not root.is_dir():
        raise ConfigurationError("ROOT", str(root), "a folder of this machine that exists")
    if not days >= 0:
        raise ConfigurationError("--days", days, "a number of days, at least 0")
    before_ns = time.time_ns() - int(days * _DAY_NS)
    state = _state(root)
    _check_unused(root)
    named = set().union(*map(_named_below, (root, *also)))
    found = [one for one in _stored_before(root, before_ns) if _name_of(one.path) not in named]
    if delete and found:
        _check_unused(root)
        if _state(root) != state:
            raise FolderLockedError(str(root), "a run that has changed results meanwhile", 0.0)
        found = [one for one in found if _deleted(root, one.path, before_ns)]
    return found, _text(root, found, days, deleted=delete)


def _check_unused(root: Path) -> None:
    """Check that no run works below the root.

    Raises:
        FolderLockedError: One does.
    """
    for lock in _locks(root):
        with suppress(FileNotFoundError), unused(lock) as free:
            if not free:
                raise FolderLockedError(str(lock.parent), "a run", 0.0)


def _locks(root: Path) -> Iterator[Path]:
    return (path for path in _others(root) if path.name == _LOCKS)


def _others(root: Path) -> Iterator[Path]:
    """Yield the files below the root, but those that operators made."""
    if root.is_file():
        yield root
    for folder, folders, names in os.walk(root):
        if Path(folder) == root / FILES:
            folders[:] = [name for name in folders if not _SHELF.fullmatch(name)]
        yield from (Path(folder, name) for name in sorted(names))


def _state(root: Path) -> dict[Path, tuple[int, int]]:
    """Return size and time of each file below the root, but those that operators made."""
    found = {}
    for path in _others(root):
        with suppress(FileNotFoundError):
            status = path.stat()
            found[path] = status.st_size, status.st_mtime_ns
    return found


def _named_below(root: Path) -> set[str]:
    """Return the digests of the files that any file below the root names."""
    named: set[str] = set()
    for path in _others(root):
        if not path.is_file():
            continue
        with suppress(FileNotFoundError), path.open("rb") as file:
            rest = b""
            while block := file.read(_BLOCK_BYTES):
                block = rest + block
                named.update((one[1] + one[2]).decode() for one in _NAME.finditer(block))
                rest = block[-_NAME_BYTES:]
    return named


def _stored_before(root: Path, before_ns: int) -> Iterator[UnnamedFile]:
    """Yield the stored files and drafts that are older than a time."""
    for folder in sorted((root / FILES).glob("[0-9a-f][0-9a-f]")):
        for path in sorted(folder.iterdir()):
            is_draft = path.name.startswith(".") and path.name.endswith(DRAFT_ENDING)
            if is_draft or _NAME.fullmatch(name_of_content(_name_of(path)).encode()):
                with suppress(FileNotFoundError):
                    status = path.stat()
                    if status.st_mtime_ns < before_ns:
                        yield UnnamedFile(path, status.st_size)


def _name_of(path: Path) -> str:
    return path.parent.name + path.name


def _deleted(root: Path, path: Path, before_ns: int) -> bool:
    """Delete a file, unless a run has just stored it again."""
    descriptor = os.open(root / FILES / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        with locked(descriptor), suppress(FileNotFoundError):
            if path.stat().st_mtime_ns < before_ns:
                path.unlink()
                return True
        return False
    finally:
        os.close(descriptor)


def _text(root: Path, found: list[UnnamedFile], days: float, *, deleted: bool) -> str:
    lines = [f"{one.size_bytes:>16,}  {one.path.relative_to(root)}" for one in found]
    total = f"{sum(one.size_bytes for one in found):,} bytes"
    said = (
        f"{counted(len(found), 'files')} older than {days:g} days that nothing below {root} names, "
        f"{total}"
    )
    end = "deleted" if deleted else "nothing is deleted without --yes"
    return "\n".join([*lines, f"{said}: {end}" if found else said])
