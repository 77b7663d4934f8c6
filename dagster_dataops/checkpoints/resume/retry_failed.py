"""Decides which failed records are retried alone: a published result's, or an unfinished run's."""

from typing import Final

from dagster_dataops.checkpoints.checkpoint import CheckpointContent
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, published
from dagster_dataops.checkpoints.folder.run_fingerprint import CHANGEABLE, RunFingerprint, in_words
from dagster_dataops.checkpoints.resume.resume_policy import (
    Decision,
    ResumePolicy,
    changed_since,
    decide,
    differing_parts,
    resuming,
    runs_of,
    torn,
)
from dagster_dataops.checkpoints.resume.seeded_checkpoint import (
    seeded_by_result,
    seeded_by_unfinished,
)
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import RetryOutdatedError, RetryRefusedError

_WHOLE: Final = {
    "dataset": "a dataset operator takes all records at once",
    "selection": "a selection operator decides over all records at once",
    "stream": "a stream is read as a whole; what failed in it is in no record's place",
}


def standing(folder: NodeFolder, fingerprint: RunFingerprint) -> Manifest | None:
    """Return the manifest of the published result if it is this run's and no record failed."""
    found = published(folder)
    if found is None or found[1].failed:
        return None
    made_from = RunFingerprint.from_json(found[1].made_from)
    if made_from is None or not _acceptable(made_from.differences(fingerprint)):
        return None
    return found[1]


def refuse_whole(folder: NodeFolder, kind: str) -> None:
    """Refuse to retry single records of an operator that needs all of them at once.

    Raises:
        RetryRefusedError: It is one, and there is a result.
    """
    if kind in _WHOLE and folder.result.exists():
        raise RetryRefusedError(str(folder.result), _WHOLE[kind])


def decide_retry(
    folder: NodeFolder,
    found: list[CheckpointContent],
    fingerprint: RunFingerprint,
    dataset: JsonlDataset,
    kind: str,
) -> Decision:
    """Choose whose failed records to retry, and make the checkpoint to go on from.

    A retry that was cut short goes on. Otherwise it is the published result, or else an
    unfinished run over the same input. Code and options may have changed.

    Args:
        folder: Of the operator's node.
        found: Its checkpoints, newest first.
        fingerprint: Of this run.
        dataset: Its input.
        kind: Of the operator.

    Raises:
        RetryOutdatedError: There is a result, but of another input.
        RetryRefusedError: There is one of another operator, or edited since, or without what
            tells where its records' results lie.
    """
    usable = [
        content
        for content in found
        if content.table.records and _acceptable(differing_parts(content, fingerprint, dataset))
    ]
    for content in usable:
        if content.retries:
            return _go_on(folder, content, fingerprint, dataset)
    try:
        result = _published(folder, fingerprint, dataset, kind)
    except RetryRefusedError:
        if not usable:
            raise
        result = None
    if result is not None:
        note = _retrying(*result, fingerprint, usable)
        content = seeded_by_result(folder)
        content.table = content.table.without(torn(content, dataset))
        return Decision(content, note)
    if usable:
        return _go_on(folder, usable[0], fingerprint, dataset)
    return decide(folder, found, fingerprint, ResumePolicy.FAILED_RECORDS, dataset)


def _acceptable(differing: list[str] | None) -> bool:
    return differing is not None and set(differing) <= set(CHANGEABLE)


def _go_on(
    folder: NodeFolder,
    content: CheckpointContent,
    fingerprint: RunFingerprint,
    dataset: JsonlDataset,
) -> Decision:
    """Go on from an unfinished run, trying its failed records again unless that has begun."""
    content.table = content.table.without(torn(content, dataset))
    note = resuming(content, fingerprint, dataset)
    failed = content.table.failed
    if not failed or (content.retries and not changed_since(content, fingerprint)):
        content.retries = True
        return Decision(content, note)
    note = f"{note}; {failed:,} of them failed and are tried again"
    return Decision(seeded_by_unfinished(folder, content, dataset), note)


def _published(
    folder: NodeFolder, fingerprint: RunFingerprint, dataset: JsonlDataset, kind: str
) -> tuple[CheckpointContent, Manifest] | None:
    """Return what can be kept of the published result; ``None`` if nothing was published."""
    if not folder.result.exists():
        return None
    refuse_whole(folder, kind)
    found = published(folder)
    if found is None:
        reason = "it was edited or replaced since it was published"
        raise RetryRefusedError(str(folder.result), reason)
    manifest = found[1]
    kept = CheckpointContent.read(folder.path, folder.kept.name)
    whole = kept.result == manifest.fingerprint
    if not whole:
        kept.fingerprint = RunFingerprint.from_json(manifest.made_from)
    differing = differing_parts(kept, fingerprint, dataset if whole else None)
    if not _acceptable(differing):
        changed = in_words([part for part in differing or [] if part not in CHANGEABLE])
        reason = f"{changed or 'its origin'} is not that of run {manifest.run}, which made it"
        outdated = _acceptable([part for part in differing or ["format"] if part != "input"])
        refused = RetryOutdatedError if outdated else RetryRefusedError
        raise refused(str(folder.result), reason)
    if not whole or kept.table.records != manifest.rows_in - manifest.failed:
        reason = f"{folder.kept}, which says which lines came of which records, is not the one "
        raise RetryRefusedError(str(folder.result), f"{reason}that run {manifest.run} wrote")
    return kept, manifest


def _retrying(
    kept: CheckpointContent,
    manifest: Manifest,
    fingerprint: RunFingerprint,
    unused: list[CheckpointContent],
) -> str:
    note = (
        f"retrying {manifest.failed:,} failed records of run {manifest.run}; "
        f"the {kept.table.records:,} others are kept as they are"
    )
    changed = changed_since(kept, fingerprint)
    if changed:
        note += f", as asked, although {changed}"
    for content in unused[:1]:
        settled = f"{content.table.records:,} records settled by {runs_of(content)}"
        note += f"; {settled} since then are not used"
    return note
