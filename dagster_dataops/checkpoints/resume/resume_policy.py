"""Decides whether a run goes on from a checkpoint, and says why or why not."""

from dataclasses import dataclass
from enum import Enum

from dagster_dataops.checkpoints.checkpoint import CheckpointContent, fresh
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.folder.run_fingerprint import CHANGEABLE, RunFingerprint, in_words
from dagster_dataops.checkpoints.journal.segments import checksum
from dagster_dataops.checkpoints.journal.span_table import SpanTable
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import read_range
from dagster_dataops.datasets.lines import content_interval


class ResumePolicy(Enum):
    """When finished records of an unfinished run are used again.

    Attributes:
        NEVER: Start afresh; what is there is kept until the new result is published.
        AUTO: Go on where operator, options, code and input are the same.
        ACROSS_CODE: Go on even where the operator's code has changed since: records finished
            by the old code are kept as they are.
        FAILED_RECORDS: Retry the failed records of the published result alone.
    """

    NEVER = "never"
    AUTO = "auto"
    ACROSS_CODE = "across_code"
    FAILED_RECORDS = "failed_records"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to go on from, and what to tell the user (``None`` if there is nothing to tell)."""

    content: CheckpointContent
    note: str | None


def decide(
    folder: NodeFolder,
    found: list[CheckpointContent],
    fingerprint: RunFingerprint,
    policy: ResumePolicy,
    dataset: JsonlDataset,
) -> Decision:
    """Choose among the checkpoints ``found``, newest first, the one to go on from, or a new one."""
    found = [content for content in found if content.table.records]
    for content in found if policy is not ResumePolicy.NEVER else ():
        differing = _differing_anywhere(content, fingerprint, dataset)
        if differing == [] or (differing == ["code"] and policy is ResumePolicy.ACROSS_CODE):
            content.table = content.table.without(torn(content, dataset))
            return Decision(content, resuming(content, fingerprint, dataset))
    new = fresh(folder.checkpoints)
    if not found:
        note = f"this run cannot be resumed: {fingerprint.unknown}" if fingerprint.unknown else None
        return Decision(new, note)
    if policy is ResumePolicy.NEVER:
        why = "resuming is switched off"
    elif fingerprint.unknown:
        why = fingerprint.unknown
    else:
        why = _why_afresh(_differing_anywhere(found[0], fingerprint, dataset))
    return Decision(new, _afresh(found[0], why))


def _differing_anywhere(
    content: CheckpointContent, fingerprint: RunFingerprint, dataset: JsonlDataset
) -> list[str] | None:
    """Return which parts differ, those included of runs whose records were kept nevertheless."""
    differing = differing_parts(content, fingerprint, dataset)
    if differing is None:
        return None
    return list(dict.fromkeys([*differing, *fingerprint.differs_from(content.kept_from)]))


def differing_parts(
    content: CheckpointContent, fingerprint: RunFingerprint, dataset: JsonlDataset | None
) -> list[str] | None:
    """Return which parts differ; ``None`` if the checkpoint does not say what it belongs to.

    With ``dataset``, a file that was touched or copied is read to see whether it is the same.
    """
    if content.fingerprint is None:
        return None
    differing = content.fingerprint.differences(fingerprint)
    if "input" in differing and dataset and _input_unchanged(content, fingerprint, dataset):
        differing.remove("input")
    return differing


def _input_unchanged(
    content: CheckpointContent, fingerprint: RunFingerprint, dataset: JsonlDataset
) -> bool:
    """Whether a file that was touched or copied still holds every settled span's input."""
    before = content.fingerprint.input if content.fingerprint else ""
    if not (before.startswith("stat:") and fingerprint.input.startswith("stat:")):
        return False
    if before.split(":")[1] != fingerprint.input.split(":")[1]:  # the sizes
        return False
    return holds_settled(dataset, content.table)


def holds_settled(dataset: JsonlDataset, table: SpanTable) -> bool:
    """Whether a file holds every settled span's input, by the checksums that spans then carry."""
    with dataset.path.open("rb") as file:
        descriptor = file.fileno()
        return all(
            checksum(read_range(descriptor, span.start, span.length)) == span.input_check
            for span, _, _ in table.ordered()
        )


def torn(content: CheckpointContent, dataset: JsonlDataset) -> list[int]:
    """Return the starts of spans next to a gap that do not begin and end with a line.

    A span ends within a line if its file had just been cut short when it was read, and is whole
    again. It begins within a line if the newline before it was overwritten since: that byte is in
    the gap, which no checksum covers.
    """
    interval = content_interval(dataset.path)
    edges = {edge for gap in content.table.gaps(interval) for edge in gap} - {interval.start}
    with dataset.path.open("rb") as file:
        within = {at for at in edges if read_range(file.fileno(), at - 1, 1) != b"\n"}
    if not within:
        return []
    spans = (span for span, _, _ in content.table.ordered())
    return [s.start for s in spans if s.start in within or s.start + s.length in within]


def resuming(content: CheckpointContent, fingerprint: RunFingerprint, dataset: JsonlDataset) -> str:
    """Return what to tell of going on from ``content``."""
    total = f" of {dataset.rows:,}" if dataset.rows is not None else ""
    note = f"resuming: {content.table.records:,}{total} records settled by {runs_of(content)}"
    changed = changed_since(content, fingerprint)
    return f"{note}; {changed}, those records are kept as asked" if changed else note


def changed_since(content: CheckpointContent, fingerprint: RunFingerprint) -> str:
    """Return what of the operator has changed since ``content``, in words; empty if nothing."""
    before = content.fingerprint
    differing = before.differences(fingerprint) if before is not None else []
    changed = [part for part in differing if part in CHANGEABLE]
    parts = in_words(changed).replace("its", "the operator's", 1)
    return f"{parts} {_have(changed)} changed since" if changed else ""


def _why_afresh(differing: list[str] | None) -> str:
    if differing is None:
        return "it does not say what it belongs to"
    return f"{in_words(differing)} {_have(differing)} changed since"


def _have(parts: list[str]) -> str:
    return "have" if len(parts) > 1 or parts == ["options"] else "has"


def _afresh(content: CheckpointContent, why: str) -> str:
    return (
        f"starting afresh: {content.table.records:,} records settled by {runs_of(content)} are not "
        f"used, since {why}; they are kept until this run's result is published"
    )


def runs_of(content: CheckpointContent) -> str:
    """Return the runs that settled ``content``, in words."""
    latest = content.attempts[-1] if content.attempts else "unknown"
    earlier = len(content.attempts) - 1
    return f"run {latest}" + (f" and {earlier} before it" if earlier > 0 else "")
