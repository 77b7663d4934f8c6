"""`FolderVersions`: earlier results of a node in a folder.

A version is a folder ``.history/<number>`` in the folder of the node, with the files of a published
result under their names. They are hard links: the disk holds them once, and a publication replaces
names, never the content of a file. Where the file system has no hard links they are copies.

The folder of a version is made under another name, synced and renamed, before the publication that
replaces its result begins. So a crash leaves the whole version or none; and a version that is there
after a crash is not kept again, because the result in place is still the one that it holds.

The manifest is linked last. The time of its last change is then not before that of the result, so
the result counts as unchanged, in the version and in its place; see `Manifest.dataset`.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.versions.version import CURRENT, ResultVersion
from dagster_dataops.datasets.durable_files import (
    copy_durably,
    make_folder,
    read_if_there,
    storage,
    sync_folder,
    write_durably,
)
from dagster_dataops.datasets.published_files import HISTORY, checks_of
from dagster_dataops.errors import VersionMissingError
from dagster_dataops.foundation.concurrency.background import deleting

_DRAFT: Final = ".draft"
_REMOVED: Final = ".removed-"


class FolderVersions:
    """The versions of the result of a node. What changes them holds the lock of the folder."""

    def __init__(self, folder: NodeFolder) -> None:
        self._folder = folder
        self._path = folder.path / HISTORY

    def numbers(self) -> list[int]:
        """Return the numbers of the versions, the oldest first."""
        with storage(self._path, "list the versions"):
            try:
                names = [path.name for path in self._path.iterdir()]
            except FileNotFoundError:
                return []
        return sorted(int(name) for name in names if name.isascii() and name.isdecimal())

    def manifest(self, number: int) -> bytes:
        """Return the manifest of a version; empty if it is gone."""
        return read_if_there(self.manifest_file(number), "read the manifest of a version")

    def manifest_file(self, number: int) -> Path:
        """Return the file with the manifest of a version."""
        return NodeFolder(self._path / str(number), self._folder.name).manifest

    def get(self, number: int) -> ResultVersion:
        """Return a version.

        Raises:
            VersionMissingError: It is gone or damaged.
        """
        path = self._path / str(number)
        if not path.is_dir():
            raise VersionMissingError(str(self._folder.path), f"there is no version {number}")
        return ResultVersion.of(str(number), NodeFolder(path, self._folder.name))

    def keep(self) -> bool:
        """Keep the result in place as the newest version. It must be in one file.

        Returns:
            Whether a file had to be copied.

        Raises:
            StorageError: The disk refuses, for example for lack of space. No version was made.
        """
        draft = self._path / _DRAFT
        numbers = self.numbers()
        try:
            make_folder(draft)
            with storage(draft, "keep the published result"):
                copied = self._fill(draft)
                draft.rename(self._path / str(max(numbers, default=0) + 1))
                sync_folder(self._path)
                sync_folder(self._folder.path)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return copied

    def _fill(self, draft: Path) -> bool:
        shutil.rmtree(draft)  # what a crash has left
        draft.mkdir()
        copied = False
        folders = {draft}
        for path in _files_of(ResultVersion.of(CURRENT, self._folder)):
            target = draft / path.relative_to(self._folder.path)
            make_folder(target.parent)
            folders.update(parent for parent in target.parents if parent.is_relative_to(draft))
            copied |= give_second_name(path, target)
        for folder in sorted(folders, reverse=True):  # the inner ones first
            sync_folder(folder)
        return copied

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove versions: rename each at once, and delete its files in the background."""
        with storage(self._path, "remove versions"):
            for left in self._path.glob(f"{_REMOVED}*"):  # by a crash
                deleting.run(partial(_delete, left))
            for number in numbers:
                removed = self._path / f"{_REMOVED}{os.urandom(6).hex()}"
                with suppress(FileNotFoundError):
                    (self._path / str(number)).rename(removed)
                    self._unlink_shared(removed)
                    deleting.run(partial(_delete, removed))

    def _unlink_shared(self, removed: Path) -> None:
        """Delete the names of a removed version for files that the result in place shares.

        A version that was published again shares them. Deleting a name sets the change time of the
        file, as an edit does; so its manifest is written again, if the file was unchanged before.
        """
        manifest = Manifest.of(self._folder)
        parts = {} if manifest is None else manifest.parts(self._folder)
        for place, part in parts.values():
            second = removed / place.result.relative_to(self._folder.path)
            if second.exists() and place.result.exists() and second.samefile(place.result):
                unchanged = part.dataset(place).state is not None
                second.unlink()
                if unchanged:
                    write_durably(place.manifest, place.manifest.read_bytes())


def kept_manifests(folder: NodeFolder) -> Iterator[Manifest]:
    """Yield the manifests of the versions in the folder of a node; damaged ones are left out."""
    for number in FolderVersions(folder).numbers():
        manifest = Manifest.of(NodeFolder(folder.path / HISTORY / str(number), folder.name))
        if manifest is not None:
            yield manifest


def _files_of(version: ResultVersion) -> Iterator[Path]:
    """Yield the files of a published result; the manifests last, that of the node behind them.

    The files of an artefact are not among them: its versions have folders of their own, which stay
    as long as a manifest names them.
    """
    folder = version.folder
    parts = version.manifest.parts(folder).values()
    yield from (place.result for place, _ in parts)
    yield from (
        path for path in (folder.errors, folder.kept, folder.input_digests) if path.exists()
    )
    checks = (checks_of(place.result) for place, _ in parts)
    yield from (path for path in checks if path.exists())
    if version.manifest.outputs:
        yield from (place.manifest for place, _ in parts)
    yield folder.manifest


def give_second_name(path: Path, target: Path) -> bool:
    """Link a file under a second name, or copy it durably; return whether it was copied.

    Raises:
        OSError: The disk refuses.
    """
    try:
        os.link(path, target)
    except OSError:  # a file system without links, or a file that has too many
        copy_durably(path, target)
        shutil.copystat(path, target)  # a manifest names the modification time
        return True
    return False


def _delete(removed: Path) -> None:
    shutil.rmtree(removed, ignore_errors=True)
