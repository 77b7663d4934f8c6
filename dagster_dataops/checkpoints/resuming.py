"""Decides whether a run goes on from a checkpoint, and says why or why not."""

from dataclasses import dataclass
from enum import Enum

from dagster_dataops.checkpoints.checkpoint import CheckpointContent, fresh
from dagster_dataops.checkpoints.fingerprint import RunFingerprint, in_words
from dagster_dataops.checkpoints.manifest import NodeFolder
from dagster_dataops.checkpoints.segments import checksum
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.files import read_range
from dagster_dataops.datasets.lines import content_interval


class ResumePolicy(Enum):
    """When finished records of an unfinished run are used again.

    Attributes:
        NEVER: Start afresh; what is there is kept until the new result is published.
        AUTO: Go on where operator, options, code and input are the same.
        ACROSS_CODE: Go on even where the operator's code has changed since: records finished
            by the old code are kept as they are.
    """

    NEVER = "never"
    AUTO = "auto"
    ACROSS_CODE = "across_code"


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
        differing = _differing(content, fingerprint, dataset)
        if differing == [] or (differing == ["code"] and policy is ResumePolicy.ACROSS_CODE):
            content.table = content.table.without(_torn(content, dataset))
            return Decision(content, _resuming(content, fingerprint, dataset))
    new = fresh(folder.checkpoints)
    if not found:
        return Decision(new, None)
    if policy is ResumePolicy.NEVER:
        why = "resuming is switched off"
    else:
        why = _why_afresh(_differing(found[0], fingerprint, dataset))
    return Decision(new, _afresh(found[0], why))


def _differing(
    content: CheckpointContent, fingerprint: RunFingerprint, dataset: JsonlDataset
) -> list[str] | None:
    """Return which parts differ; ``None`` if the checkpoint does not say what it belongs to."""
    if content.fingerprint is None:
        return None
    differing = content.fingerprint.differences(fingerprint)
    if "input" in differing and _input_unchanged(content, fingerprint, dataset):
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
    with dataset.path.open("rb") as file:
        descriptor = file.fileno()
        return all(
            checksum(read_range(descriptor, span.start, span.length)) == span.input_check
            for span, _, _ in content.table.ordered()
        )


def _torn(content: CheckpointContent, dataset: JsonlDataset) -> list[int]:
    """Return the starts of spans that end within a line.

    So ends one that was read from a file just cut short, and now whole again: its last line was
    not the line that now stands there.
    """
    interval = content_interval(dataset.path)
    opened = {gap.start for gap in content.table.gaps(interval)} - {interval.start}
    with dataset.path.open("rb") as file:
        within = {at for at in opened if read_range(file.fileno(), at - 1, 1) != b"\n"}
    if not within:
        return []
    return [s.start for s, _, _ in content.table.ordered() if s.start + s.length in within]


def _resuming(
    content: CheckpointContent, fingerprint: RunFingerprint, dataset: JsonlDataset
) -> str:
    total = f" of {dataset.rows:,}" if dataset.rows is not None else ""
    note = f"resuming: {content.table.records:,}{total} records settled by {_runs(content)}"
    if content.fingerprint and "code" in content.fingerprint.differences(fingerprint):
        note += "; the operator's code has changed since, those records are kept as asked"
    return note


def _why_afresh(differing: list[str] | None) -> str:
    if differing is None:
        return "it does not say what it belongs to"
    plural = "have" if len(differing) > 1 or differing == ["options"] else "has"
    return f"{in_words(differing)} {plural} changed since"


def _afresh(content: CheckpointContent, why: str) -> str:
    return (
        f"starting afresh: {content.table.records:,} records settled by {_runs(content)} are not "
        f"used, since {why}; they are kept until this run's result is published"
    )


def _runs(content: CheckpointContent) -> str:
    latest = content.attempts[-1] if content.attempts else "unknown"
    earlier = len(content.attempts) - 1
    return f"run {latest}" + (f" and {earlier} before it" if earlier > 0 else "")
