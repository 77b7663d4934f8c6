"""Decide which failed records are retried: those of a published result or an unfinished run."""

from collections.abc import Callable
from pathlib import Path

from dagster_dataops.checkpoints.checkpoint import CheckpointContent
from dagster_dataops.checkpoints.folder.manifest import (
    Manifest,
    NodeFolder,
    published_manifest,
    unreadable,
)
from dagster_dataops.checkpoints.folder.run_fingerprint import CHANGEABLE, RunFingerprint, in_words
from dagster_dataops.checkpoints.journal.frames import FORMAT
from dagster_dataops.checkpoints.journal.segments import Segments
from dagster_dataops.checkpoints.resume.checkpoint_match import (
    changeable,
    differing_parts,
    without_torn,
)
from dagster_dataops.checkpoints.resume.merged_outputs import seed_folder
from dagster_dataops.checkpoints.resume.start_decision import (
    StartDecision,
    StartKind,
    StartRequest,
    changed_since,
    resuming,
    settled_by,
)
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import (
    storage,
    sync_folder,
    write_durably,
)
from dagster_dataops.datasets.published_files import JOURNAL
from dagster_dataops.errors import RetryOutdatedError, RetryRefusedError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.kinds.kind import OperatorKind


def refuse_whole(folder: NodeFolder, kind: OperatorKind) -> None:
    """Check that single records of an operator of this kind can be retried.

    Raises:
        RetryRefusedError: The operator needs all records at once, and there is a result.
    """
    folder = folder.as_published()
    if kind.as_a_whole and folder.place.find(folder.result):
        raise RetryRefusedError(str(folder.result), kind.as_a_whole)


def retry_failed(request: StartRequest, dataset: JsonlDataset) -> StartDecision | None:
    """Return the decision to retry failed records, with the checkpoint to write to.

    A retry that was interrupted is resumed. Otherwise the failed records of the published result
    are retried, or else those of an unfinished run over the same input. Code and options may have
    changed. Without any of these, the result is ``None``.

    Raises:
        RetryOutdatedError: The published result was made from another input.
        RetryRefusedError: The result is of another operator, was edited since, or lacks the map
            from records to result lines.
    """
    usable = [
        content
        for content in request.contents
        if content.table.records
        and changeable(differing_parts(content, request.fingerprint, dataset))
    ]
    for content in usable:
        if content.retries:
            return _continue(request, content, dataset)
    try:
        result = _published(request, dataset)
    except RetryRefusedError:
        if not usable:
            raise
        result = None
    if result is not None:
        note = _retrying(*result, request.fingerprint, usable)
        seed = seeded_by_result(request.folder, request.take_result, request.segments_of)
        content = without_torn(seed, dataset)
        return StartDecision(StartKind.RETRY_FAILED, content, note)
    if usable:
        return _continue(request, usable[0], dataset)
    return None


def _continue(
    request: StartRequest, content: CheckpointContent, dataset: JsonlDataset
) -> StartDecision:
    """Resume an unfinished run; retry its failed records unless that retry has already begun."""
    content = without_torn(content, dataset)
    note = resuming(content, request)
    failed = content.table.failed
    if not failed or (content.retries and not changed_since(content, request.fingerprint)):
        content.retries = True
        return StartDecision(StartKind.RESUME, content, note)
    note = f"{note}; {failed:,} of them failed and are tried again"
    return StartDecision(StartKind.RETRY_FAILED, content, note)


def _published(
    request: StartRequest, dataset: JsonlDataset
) -> tuple[CheckpointContent, Manifest] | None:
    """Return the records of the published result that did not fail; ``None`` without a result."""
    folder, fingerprint = request.folder.as_published(), request.fingerprint
    place = str(folder.path if folder.outputs else folder.result)
    if not any(node.place.find(node.result) for node in (folder, *folder.outputs.values())):
        return None
    refuse_whole(folder, request.kind)
    if written_format := unreadable(folder.located(folder.manifest)):
        what = "the kept journal" if folder.kept.exists() else "the manifest"
        raise RetryRefusedError(place, _of_format(what, written_format))
    manifest = published_manifest(folder)
    if manifest is None:
        reason = "it was edited or replaced since it was published"
        raise RetryRefusedError(place, reason)
    kept = CheckpointContent.read(folder.path, folder.kept.name)
    if kept.foreign:
        raise RetryRefusedError(place, _of_format("the kept journal", kept.format))
    whole = kept.result == manifest.fingerprint
    if not whole:
        kept.fingerprint = RunFingerprint.from_json(manifest.made_from)
    differing = differing_parts(kept, fingerprint, dataset if whole else None)
    if not changeable(differing):
        changed = in_words([part for part in differing or [] if part not in CHANGEABLE])
        reason = f"{changed or 'its origin'} is not that of run {manifest.run}, which published it"
        outdated = changeable([part for part in differing or ["format"] if part != "input"])
        refused = RetryOutdatedError if outdated else RetryRefusedError
        raise refused(place, reason)
    if not whole or kept.table.records != manifest.rows_in - manifest.failed:
        reason = f"{folder.kept}, the map from records to result lines, is not the file "
        raise RetryRefusedError(place, f"{reason}that run {manifest.run} wrote")
    return kept, manifest


def _of_format(what: str, written_format: str) -> str:
    return (
        f"{what} has format {written_format}; this version reads {FORMAT}. Retry with the version "
        "that published it, or run all records again"
    )


def _retrying(
    kept: CheckpointContent,
    manifest: Manifest,
    fingerprint: RunFingerprint,
    unused: list[CheckpointContent],
) -> str:
    note = (
        f"retrying {counted(manifest.failed, 'failed records')} of run {manifest.run}; "
        f"the other {kept.table.records:,} are kept"
    )
    changed = changed_since(kept, fingerprint)
    if changed:
        note += f", as asked, although {changed}"
    for content in unused[:1]:
        note += f"; without {settled_by(content, content.table.records)} since then"
    return note


def seeded_by_result(
    folder: NodeFolder,
    take: Callable[[Path], bool] = lambda _: False,
    segments_of: Callable[[Path], Segments] = Segments,
) -> CheckpointContent:
    """Return a new checkpoint whose only segment is the published result.

    In a bucket it stays where it is; in a folder it is a link if possible.

    Args:
        folder: Of the node.
        take: As `Claim.take_result`.
        segments_of: Return the segments of the checkpoint.
    """
    new = seed_folder(folder, take)
    with storage(folder.kept, "read the file"):
        journal = folder.kept.read_bytes()
    with storage(new, "sync"):
        sync_folder(new)  # after a power loss the journal must not name a missing segment
    write_durably(new / JOURNAL, journal)
    content = CheckpointContent.read(new)
    content.segments_of, content.retries = segments_of, True
    return content
