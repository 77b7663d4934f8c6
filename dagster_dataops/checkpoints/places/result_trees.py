"""`ResultTree`: the folders below a root of results, on a disk or in a bucket, to delete some."""

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Final

from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.checkpoints.places.object_journal import ObjectJournal
from dagster_dataops.datasets.published_files import MANIFEST
from dagster_dataops.errors import FolderLockedError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import CopiedFile, StoreBucket
from dagster_dataops.foundation.places.open_stores import reading, writing
from dagster_dataops.foundation.places.root import Root

_RUN: Final = "prune"
_LOCK_SECONDS: Final = 0.0  # a run that works in a folder keeps it
_RECENT_SECONDS: Final = 3600.0  # a run that has written since may be at work
_TAKEN_OVER_SECONDS: Final = 7 * 24 * 3600.0  # a run that sleeps longer finds nothing to publish
_JOURNAL: Final = ".journal"


class ResultTree(ABC):
    """The folders below a root. Hidden folders and links are left out."""

    @abstractmethod
    def folders(self, folder: Path) -> list[Path]:
        """Return the folders in a folder, sorted."""

    @abstractmethod
    def exists(self, path: Path) -> bool:
        """Return whether there is a file or a folder."""

    @abstractmethod
    def is_begun(self, folder: Path) -> bool:
        """Return whether a folder has the journal of a run that has not published."""

    @abstractmethod
    def size(self, folder: Path) -> int:
        """Return the space that the files in a folder take, in bytes."""

    @abstractmethod
    def delete(self, folder: Path) -> None:
        """Delete a folder.

        Raises:
            FolderLockedError: A run works in it.
            StorageError: The store refuses.
        """


def tree_of(root: Root) -> ResultTree:
    """Return the folders below a root; those of a bucket as they are at this moment.

    Raises:
        StorageError: The store cannot be read.
    """
    return FolderTree() if root.bucket is None else BucketTree(root.bucket, root.path)


class FolderTree(ResultTree):
    """Folders of this machine."""

    @override
    def folders(self, folder: Path) -> list[Path]:
        if not folder.is_dir():
            return []
        inner = (path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
        return sorted(path for path in inner if not path.name.startswith("."))

    @override
    def exists(self, path: Path) -> bool:
        return path.exists()

    @override
    def is_begun(self, folder: Path) -> bool:
        return False  # see `NodeFolder.checkpoints`

    @override
    def size(self, folder: Path) -> int:
        files = (
            path.lstat() for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()
        )
        return sum(status.st_blocks * 512 for status in files)

    @override
    def delete(self, folder: Path) -> None:
        with ExitStack() as held:
            for lock in sorted(folder.rglob(".lock")):
                held.callback(FolderLock(lock.parent, _RUN, _LOCK_SECONDS).release)
            shutil.rmtree(folder)


class BucketTree(ResultTree):
    """Folders of a bucket, by one listing of the keys below a root.

    A run at work cannot be seen, but for what it has written. Before a folder is deleted, its nodes
    are taken over, so that such a run ends with a `LostError`. The entries that say so stay: a
    later call finds them old, and deletes them.
    """

    def __init__(self, bucket: StoreBucket, root: Path) -> None:
        self._bucket = bucket
        self._key = bucket.key_of(root)
        listed = reading(bucket).listed(self._key)
        self._objects = {bucket.folder / key: stored for key, stored in listed.items()}
        self._inside: dict[Path, set[Path]] = {}
        for path in self._objects:
            for inner, outer in pairwise((path, *path.parents)):
                known = self._inside.setdefault(outer, set())
                if inner in known or inner == root:
                    break
                known.add(inner)

    @override
    def folders(self, folder: Path) -> list[Path]:
        inner = (path for path in self._inside.get(folder, ()) if path in self._inside)
        return sorted(path for path in inner if not path.name.startswith("."))

    @override
    def exists(self, path: Path) -> bool:
        return path in self._objects or path in self._inside

    @override
    def is_begun(self, folder: Path) -> bool:
        entries = list(self._below(folder / _JOURNAL))
        return len(entries) > 1 or (bool(entries) and self._age(entries) > _TAKEN_OVER_SECONDS)

    @override
    def size(self, folder: Path) -> int:
        return sum(self._objects[path].status.size for path in self._below(folder))

    @override
    def delete(self, folder: Path) -> None:
        entries = [path for path in self._below(folder) if _JOURNAL in path.parts]
        age = self._age(entries)
        if age < _RECENT_SECONDS:
            holder = f"a run that wrote to its journal {age / 60:.0f} minutes ago, or published"
            url = str(CopiedFile(self._bucket, folder))
            raise FolderLockedError(url, f"{holder}; it counts as at work for an hour", 0.0)
        store, kept = writing(self._bucket, self._key), set()
        nodes = {Path(*path.parts[: path.parts.index(_JOURNAL)]) for path in entries}
        for node in sorted(nodes):
            others = any(_JOURNAL not in path.parts for path in self._below(node))
            if others or len(list(self._below(node / _JOURNAL))) > 1:
                journal = ObjectJournal(store, self._bucket.key_of(node), _RUN)
                kept.add(journal.entry_key(journal.first))
        names = store.names(self._bucket.key_of(folder))
        heads_first = sorted(names, key=lambda key: not key.endswith(MANIFEST))
        store.remove(key for key in heads_first if key not in kept)

    def _below(self, folder: Path) -> Iterator[Path]:
        for path in self._inside.get(folder, ()):
            if path in self._objects:
                yield path
            yield from self._below(path)

    def _age(self, paths: Iterable[Path]) -> float:
        """Return the seconds since the last of the objects was written."""
        written = max((self._objects[path].modified for path in paths), default=0.0)
        return time.time() - written
