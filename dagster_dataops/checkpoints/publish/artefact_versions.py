"""Write a version of an artefact, and remove versions that are no longer used.

A version is built in a draft folder and made durable. Then its listing is written and the draft is
renamed. Both happen before the manifest of the node names the version: after a crash at any moment
the manifest names a complete version, the new one or the one before it.
"""

import os
import shutil
from functools import partial
from pathlib import Path

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.concurrency.background import deleting
from dagster_dataops.concurrency.file_lock import unused
from dagster_dataops.datasets.artefact import (
    damage,
    digest_of_listing,
    is_version,
    list_files,
    listing_of,
)
from dagster_dataops.datasets.durable_files import (
    make_folder_durably,
    read_if_there,
    storage,
    sync_folder,
    sync_tree,
    write_durably,
)
from dagster_dataops.errors import InputError, StorageError
from dagster_dataops.records import Record, encode

_DRAFT = ".draft-"
_REMOVED = ".removed-"


class ArtefactVersions:
    """The versions of one artefact. Use it under the lock of the node's folder.

    Args:
        folder: The folder of the node.
    """

    def __init__(self, folder: NodeFolder) -> None:
        self._folder = folder
        self._path = folder.artefact

    def new_draft(self) -> Path:
        """Return an empty folder for the next version; remove drafts that a crash has left.

        Raises:
            StorageError: The disk refuses.
        """
        make_folder_durably(self._path)
        draft = self._free(_DRAFT)
        with storage(draft, "create the folder"):
            for path in list(self._path.iterdir()):
                if path.name.startswith((_DRAFT, _REMOVED)):
                    self.discard(path)
                elif not path.is_dir() and not path.with_suffix("").is_dir():
                    path.unlink()  # a listing, or its draft, without a version
            draft.mkdir()
        return draft

    def discard(self, path: Path) -> None:
        """Remove a version or a draft: rename it at once, delete it in the background."""
        if path.exists():
            removed = path if path.name.startswith(_REMOVED) else path.rename(self._free(_REMOVED))
            deleting.run(partial(shutil.rmtree, removed, ignore_errors=True))
        listing_of(path).unlink(missing_ok=True)

    def publish(self, draft: Path) -> tuple[str, list[Record]]:
        """Make a draft durable and a version; return the name of the version and its listing.

        A draft that equals an existing version is removed, and that version stays. Other versions
        are removed, unless they are current or in use.

        Raises:
            ValueError: The draft holds a link or a special file.
            StorageError: The disk refuses.
        """
        with storage(draft, "publish the artefact"):
            rows = _listed(draft)
            sync_tree(draft)
            name = digest_of_listing(rows)
            version = self._path / name
            if damage(version):
                self.discard(version)
                write_durably(listing_of(version), b"".join(map(encode, rows)))
                draft.rename(version)
                sync_folder(self._path)
            else:
                self.discard(draft)
            self._remove_unused(version)
        return name, rows

    def _remove_unused(self, latest: Path) -> None:
        data = read_if_there(self._folder.manifest, "read the current version")
        manifest = Manifest.parse(data)
        current = self._path / (manifest.artefact if manifest is not None else "")
        for version in filter(is_version, list(self._path.iterdir())):
            if version not in {latest, current}:
                with unused(version) as free:
                    if free:
                        self.discard(version)

    def _free(self, prefix: str) -> Path:
        return self._path / f"{prefix}{os.urandom(6).hex()}"


def _listed(draft: Path) -> list[Record]:
    try:
        return list_files(draft)
    except InputError as error:
        raise StorageError(error.source, "read it back", error.reason) from error
