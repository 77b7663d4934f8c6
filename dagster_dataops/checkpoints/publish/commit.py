"""Publish a result: put its drafts in place, all or none.

Result and error file are written as drafts and synced, then the manifest. Only then are they
renamed into place. A crash before the manifest's draft is complete leaves the previous result in
place. After a later crash, the next run in the folder finishes the publication. The folder is
synced between these steps: after a power loss, any name that was changed since the last sync may be
old or new.

Two syncs are left out where such names do no harm. A manifest tells whether the draft beside it is
its result; so both names are synced at once if there is no other draft, or none at all. And where a
power loss can take nothing, neither an earlier result nor settled records, the names of drafts are
not synced.

A node with named outputs publishes the results of all of them: each has a manifest of its own, and
the manifest of the node is the last.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, published_here
from dagster_dataops.checkpoints.publish.cleanup import delete_removed, remove_checkpoints
from dagster_dataops.checkpoints.publish.other_versions import keep_other_versions
from dagster_dataops.datasets.artefact import listing_of
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import (
    draft_file,
    draft_of,
    read_if_there,
    storage,
    sync_folder,
    write_draft,
    write_durably,
)
from dagster_dataops.errors import InputError
from dagster_dataops.foundation.hashing.file_digests import has_content
from dagster_dataops.foundation.places.bucket import Location, local_path

Publishing: TypeAlias = Callable[[Mapping[Path, Location], bytes], AbstractContextManager[None]]
FindDraft: TypeAlias = Callable[[Path], Location | None]


def _at_once(files: Mapping[Path, Location], manifest: bytes) -> AbstractContextManager[None]:  # noqa: ARG001
    return nullcontext()


def commit(
    folder: NodeFolder,
    manifest: Manifest,
    publishing: Publishing = _at_once,
    find_draft: FindDraft = draft_file,
    *,
    settled: bool = True,
    unread: bool = True,
) -> Manifest:
    """Put the drafts in place and remove every checkpoint of the node.

    A complete draft of the manifest means that the other drafts are complete and durable, and that
    only renames are left. An incomplete draft is not valid JSON and is ignored.

    Args:
        folder: Of the node.
        manifest: Of the drafts.
        publishing: As `Claim.publishing`.
        find_draft: As `Claim.draft`.
        settled: Whether checkpoints of the node may hold records that survive a power loss.
        unread: Whether the folder may have something that this version does not read; `notes_on`
            tells.

    Returns:
        The published manifest. If the file in place has the same bytes, it is kept, and the
        manifest has its modification time.
    """
    folder = folder.in_form(manifest.form)
    if unread:
        keep_other_versions(folder)
    with storage(folder.path, "publish the result"):
        manifest, kept = _without_equal_drafts(folder, manifest)
        alone = _has_no_other_draft(folder, manifest, kept)
        if not alone:
            _sync_folders(folder, manifest)  # the names of the drafts
        in_place = folder.manifest.exists() or folder.result.exists()
    write_draft(folder.manifest, manifest.to_bytes(), sync_name=settled or in_place or not alone)
    files = published_files(folder, manifest, find_draft) | {path: path for path in kept}
    with publishing(files, manifest.to_bytes()):
        _finish(folder, manifest)
    return manifest


def published_files(
    folder: NodeFolder, manifest: Manifest, find_draft: FindDraft = draft_file
) -> dict[Path, Location]:
    """Return the files of a publication but for manifests, each with its draft or itself."""
    paths: list[Path] = []
    versions: list[Path] = []
    for place, part in manifest.parts(folder).values():
        if part.parted:
            version = place.parts / part.parted
            versions += (*sorted(version.iterdir()), listing_of(version))
        else:
            paths.append(place.result)
        if manifest.outputs and folder.place.at_once:
            write_draft(place.manifest, part.to_bytes())
            paths.append(place.manifest)
        if part.artefact:
            versions += _files_of(place.artefact / part.artefact)
    paths += [folder.errors] * bool(manifest.failed) + [folder.kept] * manifest.mapped
    digests = folder.input_digests
    paths += [digests] * (find_draft(digests) is not None or digests.exists())
    files: dict[Path, Location] = {path: path for path in versions}
    for path in paths:
        draft = find_draft(path)
        if draft is not None or folder.place.find(path) is not None:
            files[path] = draft or path
    return files


def _files_of(version: Path) -> Iterator[Path]:
    """Yield the files and empty folders of a version of an artefact, and its listing."""
    for path in version.rglob("*"):
        if path.is_file() or not any(path.iterdir()):
            yield path
    yield listing_of(version)


def _without_equal_drafts(
    folder: NodeFolder, manifest: Manifest
) -> tuple[Manifest, dict[Path, None]]:
    """Delete drafts of results equal to the published ones, and an equal draft of the error file.

    On NFS, a replaced file disappears at once for readers on other machines.
    """
    kept: dict[Path, None] = {}
    errors, draft = folder.errors, draft_of(folder.errors)
    if draft.exists() and errors.exists():
        from filecmp import cmp  # only after an earlier run

        if cmp(draft, errors, shallow=False):
            draft.unlink()
    outputs = dict(manifest.outputs)
    for name, (place, part) in manifest.parts(folder).items():
        published = None
        with suppress(InputError):  # its bucket has it no longer
            published = published_here(place)
        if published is None or published[1].parted or published[1].form != part.form:
            continue
        if not _has_content(*published, part):
            continue
        kept[place.result] = None
        draft_of(place.result).unlink(missing_ok=True)
        if not name:
            return replace(manifest, modified_ns=published[1].modified_ns), kept
        outputs[name] = {**outputs[name], "modified_ns": published[1].modified_ns}
    return replace(manifest, outputs=outputs), kept


def _has_content(dataset: JsonlDataset, published: Manifest, manifest: Manifest) -> bool:
    """Return whether a published result has the content that a manifest tells of."""
    path = local_path(dataset.location)
    if path is None:  # nobody can edit what its bucket has under this key
        told = published.size_bytes, published.fingerprint
        return told == (manifest.size_bytes, manifest.fingerprint)
    return has_content(path, manifest.size_bytes, manifest.fingerprint)


def _has_no_other_draft(folder: NodeFolder, manifest: Manifest, kept: Mapping[Path, None]) -> bool:
    """Return whether the result is the only draft beside that of the manifest, or is kept.

    A power loss may bring its deleted draft back; that is not the result of the manifest.
    """
    others = (
        draft_of(folder.input_digests).exists(),
        manifest.failed,
        manifest.mapped,
        manifest.outputs,
        manifest.artefact,
        manifest.parted,
    )
    return (draft_of(folder.result).exists() or folder.result in kept) and not any(others)


def _sync_folders(folder: NodeFolder, manifest: Manifest) -> None:
    """Sync the names in the folder of the node, and those of its outputs' folders."""
    folders = [folder.path]
    if manifest.outputs:
        places = [place.path for place, _ in manifest.parts(folder).values()]
        folders = [*places, *(path.parent for path in places), *folders]
    for path in dict.fromkeys(folders):
        sync_folder(path)


def write_manifest(folder: NodeFolder, manifest: Manifest) -> None:
    """Replace the manifest of a published result; those of named outputs first."""
    if manifest.outputs:
        _write_parts(folder, manifest)
    write_durably(folder.manifest, manifest.to_bytes())


def _write_parts(folder: NodeFolder, manifest: Manifest) -> None:
    for place, part in manifest.parts(folder).values():
        write_durably(place.manifest, part.to_bytes())


def _finish(folder: NodeFolder, manifest: Manifest) -> None:
    """Do the steps after the draft of the manifest; safe to do twice."""
    with storage(folder.path, "publish the result"):
        _put_in_place(folder, manifest)
    delete_removed(folder)


def _put_in_place(folder: NodeFolder, manifest: Manifest) -> None:
    folder = folder.in_form(manifest.form)
    results = [place.result for place, _ in manifest.parts(folder).values()]
    for path in (*results, folder.errors, folder.kept, folder.input_digests):
        _replace(path)
    if manifest.outputs:
        folder.result.unlink(missing_ok=True)  # of an operator with one result
    if not (manifest.failed and folder.errors.exists() and folder.errors.stat().st_size):
        folder.errors.unlink(missing_ok=True)
    if not manifest.mapped:
        folder.kept.unlink(missing_ok=True)
    remove_checkpoints(folder)
    _sync_folders(folder, manifest)
    if manifest.outputs:
        _write_parts(folder, manifest)
    _remove_parts(folder, manifest)
    _replace(folder.manifest)  # the last step: after an earlier crash, all steps are done again
    sync_folder(folder.path)
    _remove_other_forms(folder, manifest)


def _remove_other_forms(folder: NodeFolder, manifest: Manifest) -> None:
    """Remove results of another form: the manifest in place does not tell of them."""
    folder = folder.in_form(manifest.form)
    places = [place for place, _ in manifest.parts(folder).values()]
    for place in (*places, folder) if manifest.outputs else places:
        for path in place.other_forms:
            path.unlink(missing_ok=True)
            draft_of(path).unlink(missing_ok=True)  # of a run that was cut short


def _remove_left_over(folder: NodeFolder) -> None:
    """Remove results and drafts in another form than the published one, which a crash has left."""
    places = (folder, *folder.outputs.values())
    results = [(place.result, *place.other_forms) for place in places]
    several = any(all(path.exists() for path in forms) for forms in results)
    if several or any(draft_of(path).exists() for forms in results for path in forms):
        manifest = Manifest.of(folder)
        if manifest is not None and _is_there(folder, manifest):
            _remove_other_forms(folder, manifest)


def _remove_parts(folder: NodeFolder, manifest: Manifest) -> None:
    """Remove parts of earlier results, but those of the result before: readers may have begun.

    If the manifest of the result before cannot be read, all stay until the next publication.
    """
    parts = {folder.parts, *(place.parts for place, _ in manifest.parts(folder).values())}
    parts = {path for path in parts if path.exists()}
    before = Manifest.of(folder) if parts else None  # it is replaced last
    if before is None:
        return
    for published in (manifest, before):
        for place, part in published.parts(folder).values():
            if part.parted:
                parts.discard(place.parts)
    if parts:
        from dagster_dataops.datasets.parted_result import remove_parts  # of earlier versions

        for path in parts:
            remove_parts(path)


def _replace(path: Path) -> None:
    draft = draft_of(path)
    if draft.exists():
        draft.replace(path)


def finish_interrupted(folder: NodeFolder) -> Manifest | None:
    """Finish a publication that a crash interrupted; return its manifest, if there was one.

    A draft of a manifest without its result is deleted, and the checkpoints are kept.

    Raises:
        NewerVersionError: A newer version was publishing.
    """
    draft = draft_of(folder.manifest)
    manifest = Manifest.parse(read_if_there(draft, "finish publishing the result"), draft)
    if manifest is None or not _is_there(folder, manifest):
        with storage(folder.path, "delete drafts of a run that was cut short"):
            draft.unlink(missing_ok=True)
            for path in (folder.kept, folder.input_digests):  # only some operators replace them
                draft_of(path).unlink(missing_ok=True)
            _remove_left_over(folder)
        delete_removed(folder)
        return None
    _finish(folder, manifest)
    return manifest


def _is_there(folder: NodeFolder, manifest: Manifest) -> bool:
    """Return whether each result of a manifest is in place, or its draft is."""
    for place, part in manifest.parts(folder).values():
        draft = draft_of(place.result)
        if not part.tells_of(draft if draft.exists() else place.result):
            return False
    return True
