"""`FilesOfFolder`: the files below a folder of this machine that operators made."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.file_values.file_keeper import DRAFT_ENDING, FILES, LOCK
from dagster_dataops.datasets.file_values.stored_files import (
    BLOCK_BYTES,
    StoredFile,
    StoredFiles,
    digests_in,
    is_name_of_content,
    text_blocks,
)
from dagster_dataops.datasets.published_files import CHECKPOINTS, JOURNAL, MANIFEST
from dagster_dataops.errors import ConfigurationError, FolderLockedError
from dagster_dataops.foundation.concurrency.file_lock import locked_file, unused
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import LocalFile
from dagster_dataops.foundation.places.opening import is_compressed

_SHELF: Final = re.compile(r"[0-9a-f]{2}")
_LOCKS: Final = ".lock"  # in the folder of a node
_MANIFESTS: Final = (MANIFEST, draft_of(Path(MANIFEST)).name.removeprefix("."))


class FilesOfFolder(StoredFiles):
    """The files below a folder.

    Args:
        root: The folder. What a single file names can be asked for, too.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @override
    def check_root(self) -> None:
        if not self._root.is_dir():
            raise ConfigurationError("ROOT", str(self._root), "a folder that exists, or a URL")

    @override
    def check_unused(self, grace_seconds: float) -> None:
        check_unlocked(self._root)

    @override
    def state(self) -> dict[Path, tuple[int, int]]:
        states = {}
        for path in _others(self._root):
            with suppress(FileNotFoundError):
                status = path.stat()
                states[path] = status.st_size, status.st_mtime_ns
        return states

    @override
    def named(self) -> set[str]:
        named: set[str] = set()
        for path in _others(self._root):
            if path.is_file():
                with suppress(FileNotFoundError):
                    named |= digests_in(_blocks(path))
        return named

    @override
    def formatted(self) -> Iterator[tuple[bytes, LocalFile]]:
        for path in _others(self._root):
            is_journal = path.name == JOURNAL and path.parent.parent.name == CHECKPOINTS
            if is_journal or path.name.endswith(_MANIFESTS):
                with suppress(FileNotFoundError), path.open("rb") as file:
                    yield file.read(BLOCK_BYTES if is_journal else -1), path

    @override
    def stored_before(self, grace_seconds: float) -> Iterator[StoredFile]:
        before = time.time() - grace_seconds
        for folder in sorted((self._root / FILES).glob("[0-9a-f][0-9a-f]")):
            for path in sorted(folder.iterdir()):
                name = path.relative_to(self._root).as_posix()
                is_draft = path.name.startswith(".") and path.name.endswith(DRAFT_ENDING)
                if is_draft or is_name_of_content(name):
                    with suppress(FileNotFoundError):
                        status = path.stat()
                        if status.st_mtime < before:
                            yield StoredFile(name, status.st_size)

    @override
    def deleted(self, files: list[StoredFile], grace_seconds: float) -> list[StoredFile]:
        before = time.time() - grace_seconds
        return [file for file in files if self._is_deleted(self._root / file.name, before)]

    def _is_deleted(self, path: Path, before: float) -> bool:
        with locked_file(self._root / FILES / LOCK), suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                path.unlink()
                return True
        return False


def check_unlocked(root: Path) -> None:
    """Check that no run on this machine holds a lock on a folder below ``root``."""
    for lock in _others(root):
        if lock.name == _LOCKS:
            with suppress(FileNotFoundError), unused(lock) as free:
                if not free:
                    raise FolderLockedError(str(lock.parent), "a run", 0.0)


def _others(root: Path) -> Iterator[Path]:
    """Yield the files below a folder, or a file itself, but those that operators made."""
    if root.is_file():
        yield root
    for folder, folders, names in os.walk(root):
        if Path(folder) == root / FILES:
            folders[:] = [name for name in folders if not _SHELF.fullmatch(name)]
        yield from (Path(folder, name) for name in sorted(names))


def _blocks(path: Path) -> Iterator[bytes]:
    if is_compressed(path.name):
        yield from text_blocks(path)
        return
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block
