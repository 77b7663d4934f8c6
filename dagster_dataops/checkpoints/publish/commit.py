"""Publishing: the drafts of a result take its place, whole or not at all.

Result and error file are made as drafts and synced, then the manifest's draft; only then are they
renamed into place. A crash before the last draft leaves the previous result standing, a crash after
it is finished by whoever opens the folder next. The folder is synced between these steps: after a
power loss, of the names that were changed since the last sync any may be old and any new.
"""

import filecmp
from dataclasses import replace
from pathlib import Path

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, published
from dagster_dataops.checkpoints.publish.cleanup import delete_removed, remove_checkpoints
from dagster_dataops.datasets.digests import holds
from dagster_dataops.datasets.durable_files import (
    draft_of,
    read_if_there,
    storage,
    sync_folder,
    write_draft,
)


def commit(folder: NodeFolder, manifest: Manifest) -> Manifest:
    """Put the drafts in place and remove every checkpoint of the node.

    The manifest's draft, once it is there, says that the other drafts are complete and durable
    and that only renames are left. Half of it is no JSON, and says nothing.

    Returns:
        The manifest as published: of a result that was there before, with that file's time.
    """
    with storage(folder.path, "publish the result"):
        manifest = _without_equal_drafts(folder, manifest)
        sync_folder(folder.path)  # the names of the drafts
    write_draft(folder.manifest, manifest.to_bytes())
    _finish(folder, manifest)
    return manifest


def _without_equal_drafts(folder: NodeFolder, manifest: Manifest) -> Manifest:
    """Delete drafts equal to the published files; return the manifest of the files that stay.

    Replacing a file fails whoever reads it on another machine: on NFS it is gone at once.
    """
    errors, draft = folder.errors, draft_of(folder.errors)
    if draft.exists() and errors.exists() and filecmp.cmp(draft, errors, shallow=False):
        draft.unlink()
    found = published(folder)
    if found is None or not holds(folder.result, manifest.size_bytes, manifest.fingerprint):
        return manifest
    draft_of(folder.result).unlink()
    return replace(manifest, modified_ns=found[1].modified_ns)


def _finish(folder: NodeFolder, manifest: Manifest) -> None:
    """Do what follows a manifest's draft; harmless when done twice."""
    with storage(folder.path, "publish the result"):
        _put_in_place(folder, manifest)
    delete_removed(folder)


def _put_in_place(folder: NodeFolder, manifest: Manifest) -> None:
    for path in (folder.result, folder.errors, folder.kept):
        _replace(path)
    if not (manifest.failed and folder.errors.exists() and folder.errors.stat().st_size):
        folder.errors.unlink(missing_ok=True)
        if not manifest.outcomes:
            folder.kept.unlink(missing_ok=True)
    remove_checkpoints(folder)
    sync_folder(folder.path)
    _replace(folder.manifest)  # the last: until then, a crash has all this done again
    sync_folder(folder.path)


def _replace(path: Path) -> None:
    draft = draft_of(path)
    if draft.exists():
        draft.replace(path)


def finish_interrupted(folder: NodeFolder) -> Manifest | None:
    """Finish a publication that a crash cut short; return its manifest, if there was one.

    A manifest's draft whose result is not there counts for nothing: the checkpoints stay.
    """
    draft = draft_of(folder.manifest)
    manifest = Manifest.parse(read_if_there(draft, "finish publishing the result"))
    if manifest is None or not _is_there(folder, manifest):
        with storage(folder.path, "delete drafts of a run that was cut short"):
            draft.unlink(missing_ok=True)
            draft_of(folder.kept).unlink(missing_ok=True)  # operators that make none leave it alone
        delete_removed(folder)
        return None
    _finish(folder, manifest)
    return manifest


def _is_there(folder: NodeFolder, manifest: Manifest) -> bool:
    """Whether the result that a manifest tells of is in place or about to be."""
    draft = draft_of(folder.result)
    return manifest.tells_of(draft if draft.exists() else folder.result)
