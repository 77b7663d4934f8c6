"""Write a version of an artefact, and remove versions that are no longer used.

A version is built in a draft folder and made durable. Then its listing is written and the draft is
renamed. Both happen before the manifest of the node names the version: after a crash at any moment
the manifest names a complete version, the new one or the one before it.
"""

import os
from pathlib import Path

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.versions.folder_versions import kept_manifests
from dagster_dataops.datasets.artefact import is_version, list_files
from dagster_dataops.datasets.durable_files import (
    make_folder_durably,
    read_if_there,
    storage,
    sync_tree,
)
from dagster_dataops.datasets.version_folders import REMOVED, discard, put_version
from dagster_dataops.errors import InputError, StorageError
from dagster_dataops.foundation.concurrency.file_lock import unused
from dagster_dataops.records import Record

_DRAFT = ".draft-"


class ArtefactVersions:
    """The versions of one artefact. Use it under the lock of the node's folder."""

    def __init__(self, folder: NodeFolder) -> None:
        self._folder = folder
        self._path = folder.artefact

    def new_draft(self) -> Path:
        """Return an empty folder for the next version; remove drafts that a crash has left.

        Raises:
            StorageError: The disk refuses.
        """
        make_folder_durably(self._path)
        draft = self._path / f"{_DRAFT}{os.urandom(6).hex()}"
        with storage(draft, "create the folder"):
            for path in list(self._path.iterdir()):
                if path.name.startswith((_DRAFT, REMOVED)):
                    discard(path)
                elif not path.is_dir() and not path.with_suffix("").is_dir():
                    path.unlink()  # a listing, or its draft, without a version
            draft.mkdir()
        return draft

    def publish(self, draft: Path) -> tuple[str, list[Record]]:
        """Make a draft durable and a version; return the name of the version and its listing.

        Other versions are removed, unless they are current, in use or that of a kept result.

        Raises:
            ValueError: The draft holds a link or a special file.
            StorageError: The disk refuses.
        """
        with storage(draft, "publish the artefact"):
            rows = _listed(draft)
            sync_tree(draft)
            version = put_version(draft, rows)
            self._remove_unused(version)
        return version.name, rows

    def _remove_unused(self, latest: Path) -> None:
        data = read_if_there(self._folder.manifest, "read the current version")
        manifest = Manifest.parse(data, self._folder.manifest)
        current = self._path / (manifest.artefact if manifest is not None else "")
        kept = {self._path / manifest.artefact for manifest in kept_manifests(self._folder)}
        for version in filter(is_version, list(self._path.iterdir())):
            if version not in {latest, current, *kept}:
                with unused(version) as free:
                    if free:
                        discard(version)


def _listed(draft: Path) -> list[Record]:
    try:
        return list_files(draft)
    except InputError as error:
        raise StorageError(error.source, "read it back", error.reason) from error
