"""Publish an earlier version of a result again."""

import os
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from dagster_dataops.checkpoints.checkpoint import existing
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, published_here
from dagster_dataops.checkpoints.places.node_place import Claim
from dagster_dataops.checkpoints.publish.commit import commit, finish_interrupted
from dagster_dataops.checkpoints.publish.other_versions import refuse_newer
from dagster_dataops.checkpoints.versions.folder_versions import give_second_name
from dagster_dataops.checkpoints.versions.keeping import keep_present, present_manifest
from dagster_dataops.checkpoints.versions.node_versions import version_named
from dagster_dataops.checkpoints.versions.version import ResultVersion
from dagster_dataops.datasets.artefact import damage, listing_of
from dagster_dataops.datasets.durable_files import draft_of, make_folder, storage
from dagster_dataops.datasets.published_files import MANIFEST, checks_of
from dagster_dataops.errors import RestoreRefusedError, VersionMissingError
from dagster_dataops.foundation.hashing.file_digests import has_content
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.quantities import counted


def publish_version(folder: NodeFolder, name: str, run: str, wait_seconds: float) -> Manifest:
    """Publish an earlier version of a result again, as a run publishes its result.

    The result that it replaces is kept as the newest version.

    Args:
        folder: Of the node.
        name: The number of the version.
        run: The name of this run, for others that wait.
        wait_seconds: Seconds to wait for a run that may be ending.

    Returns:
        The manifest of the version.

    Raises:
        VersionMissingError: There is no such version, or its files were changed.
        RestoreRefusedError: An unfinished run would lose its settled records.
        FolderLockedError: A run is at work in the folder.
        NewerVersionError: A newer version has written what is in the folder.
        StorageError: The disk or the store refuses. The published result stays.
    """
    claim = folder.place.claim(run, wait_seconds)
    try:
        refuse_newer(folder, keeps=True)
        finish_interrupted(folder)
        _check_no_unfinished_run(folder, claim)
        version = version_named(folder, name)
        _fetch_artefact(folder, version)
        _check_intact(folder, version)
        present, _ = present_manifest(folder)
        if present == version.manifest and published_here(folder):
            return version.manifest  # by a run that a crash ended after it
        keep_present(folder)
        _make_drafts(folder, version)
        claim.check()

        def publishing(
            files: Mapping[Path, Location], manifest: bytes
        ) -> AbstractContextManager[None]:
            return claim.publishing(_where_stored(files, folder, version), manifest)

        manifest = commit(folder, version.manifest, publishing, claim.draft)
        kept = version.manifest.parts(version.folder)
        with storage(folder.path, "put back the outcomes of checks"):  # which belong to the results
            for output, (place, _) in version.manifest.parts(folder).items():
                _link(checks_of(kept[output][0].result), checks_of(place.result))
        return manifest
    finally:
        claim.release()


def _check_no_unfinished_run(folder: NodeFolder, claim: Claim) -> None:
    for content in existing(folder.checkpoints, claim.segments):
        if content.table.records:
            settled = counted(content.table.records, "records")
            run = content.attempts[-1] if content.attempts else "unknown"
            reason = (
                f"run {run} is not finished, and its {settled} would be lost. Run the node to its "
                f"end first, or delete {folder.located(folder.checkpoints)}"
            )
            raise RestoreRefusedError(str(folder.located(folder.path)), reason)


def _check_intact(folder: NodeFolder, version: ResultVersion) -> None:
    """Check that the files of a version are unchanged since they were published.

    A hard link shares the content of a file that was edited in its place.
    """
    for place, part in version.manifest.parts(version.folder).values():
        if not place.result.exists():
            raise VersionMissingError(str(place.result), "the file is missing")
        if not has_content(place.result, part.size_bytes, part.fingerprint):
            raise VersionMissingError(str(place.result), "it was changed after it was published")
    for path, count in (
        (version.folder.errors, version.manifest.failed),
        (version.folder.kept, version.manifest.mapped),
    ):
        if count and not path.exists():
            raise VersionMissingError(str(path), "the file is missing")
    artefact = version.manifest.artefact
    if artefact and (reason := damage(folder.artefact / artefact)):
        raise VersionMissingError(str(folder.artefact / artefact), reason)


def _fetch_artefact(folder: NodeFolder, version: ResultVersion) -> None:
    """Link the fetched files of an artefact to their place, if they are missing there."""
    name = version.manifest.artefact
    fetched, place = version.folder.artefact / name, folder.artefact / name
    if not name or place.exists() or not fetched.exists():
        return
    with storage(place, "put the artefact in place"):
        shutil.copytree(fetched, place, copy_function=os.link)
        _link(listing_of(fetched), listing_of(place))


def _make_drafts(folder: NodeFolder, version: ResultVersion) -> None:
    """Link the files of a version as the drafts of the next publication."""
    parts = version.manifest.parts(folder)
    kept = version.manifest.parts(version.folder)
    pairs = {kept[name][0].result: place.result for name, (place, _) in parts.items()}
    sources = version.folder
    pairs |= {sources.errors: folder.errors, sources.kept: folder.kept}
    pairs |= {sources.input_digests: folder.input_digests}
    with storage(folder.path, "make the drafts of a version"):
        for source, target in pairs.items():
            _link(source, draft_of(target))


def _where_stored(
    files: Mapping[Path, Location], folder: NodeFolder, version: ResultVersion
) -> dict[Path, Location]:
    """Return the files of a publication; those of a version in a bucket are its objects.

    Manifests of outputs may differ: they tell when the results here were written.
    """
    stored = {folder.path / name: file for name, file in version.objects.items()}
    return {
        path: location if path.name.endswith(MANIFEST) else stored.get(path, location)
        for path, location in files.items()
    }


def _link(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    if source.exists():
        make_folder(target.parent)
        give_second_name(source, target)
