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
    removal.spare(folder.result)
    with storage(folder.path, "publish the result"):
        _replace(folder.result)
        _replace(folder.errors)
        _replace(folder.kept)
        if not (manifest.failed and folder.errors.exists() and folder.errors.stat().st_size):
            folder.errors.unlink(missing_ok=True)
            if not manifest.outcomes:
                folder.kept.unlink(missing_ok=True)
        removal.remove_checkpoints()
        _replace(folder.manifest)  # the last: until then, all this is done again after a crash
        sync_folder(folder.path)
    removal.finish()


def _replace(path: Path) -> None:
    draft = draft_of(path)
    if draft.exists():
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
