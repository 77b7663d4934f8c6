"""Publishing: the drafts of a result take its place, whole or not at all.

Result and error file are made as drafts and synced, then the manifest's draft; only then are they
renamed into place. A crash before the last draft leaves the previous result standing, a crash after
it is finished by whoever opens the folder next.
"""

from pathlib import Path

from dagster_dataops.checkpoints.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.removal import Removal
from dagster_dataops.datasets.files import draft_of, storage, sync_folder, write_draft


def commit(folder: NodeFolder, manifest: Manifest) -> None:
    """Put the drafts in place and remove every checkpoint of the node.

    The manifest's draft, once it is there, says that the other drafts are complete and durable
    and that only renames are left. Half of it is no JSON, and says nothing.
    """
    write_draft(folder.manifest, manifest.to_bytes())
    _finish(folder, manifest)


def _finish(folder: NodeFolder, manifest: Manifest) -> None:
    """Do what follows a manifest's draft; harmless when done twice."""
    removal = Removal(folder)
    try:
        with storage(folder.path, "publish the result"):
            _put_in_place(folder, manifest, removal)
    finally:
        removal.finish()


def _put_in_place(folder: NodeFolder, manifest: Manifest, removal: Removal) -> None:
    for path in (folder.result, folder.errors, folder.kept):
        _replace(path, removal)
    if not (manifest.failed and folder.errors.exists() and folder.errors.stat().st_size):
        folder.errors.unlink(missing_ok=True)
        if not manifest.outcomes:
            folder.kept.unlink(missing_ok=True)
    removal.remove_checkpoints()
    _replace(folder.manifest, removal)  # the last: until then, a crash has all this done again
    sync_folder(folder.path)


def _replace(path: Path, removal: Removal) -> None:
    draft = draft_of(path)
    if draft.exists():
        removal.spare(path)
        draft.replace(path)


def finish_interrupted(folder: NodeFolder) -> Manifest | None:
    """Finish a publication that a crash cut short; return its manifest, if there was one."""
    manifest = Manifest.load(draft_of(folder.manifest))
    if manifest is None:
        draft_of(folder.kept).unlink(missing_ok=True)  # operators that make none leave it alone
        Removal(folder).finish()
        return None
    _finish(folder, manifest)
    return manifest
