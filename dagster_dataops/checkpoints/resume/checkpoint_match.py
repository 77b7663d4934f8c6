"""Compare a checkpoint with a run: the parts that differ, and the spans that are still valid."""

from dagster_dataops.checkpoints.checkpoint import CheckpointContent
from dagster_dataops.checkpoints.folder.run_fingerprint import CHANGEABLE, RunFingerprint
from dagster_dataops.checkpoints.journal.segments import checksum
from dagster_dataops.checkpoints.journal.span_table import SpanTable
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import opened_content
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import read_range


def differing_parts(
    content: CheckpointContent, fingerprint: RunFingerprint, dataset: JsonlDataset | None
) -> list[str] | None:
    """Return the names of the parts that differ; ``None`` if the fingerprint cannot be read.

    Args:
        content: The checkpoint.
        fingerprint: The fingerprint of the run.
        dataset: The input. If its file was touched or copied, it is read to compare the content.
            ``None`` compares only the identity of the input.
    """
    if content.fingerprint is None:
        return None
    differing = content.fingerprint.differences(fingerprint)
    if "input" in differing and dataset and _input_unchanged(content, dataset):
        differing.remove("input")
    return differing


def differing_anywhere(
    content: CheckpointContent, fingerprint: RunFingerprint, dataset: JsonlDataset
) -> list[str] | None:
    """Return the result of `differing_parts`, with the parts in which any kept run differs."""
    differing = differing_parts(content, fingerprint, dataset)
    if differing is None:
        return None
    return list(dict.fromkeys([*differing, *fingerprint.differs_from(content.kept_from)]))


def changeable(differing: list[str] | None) -> bool:
    """Return whether the setting to keep records may ignore these differences."""
    return differing is not None and set(differing) <= set(CHANGEABLE)


def _input_unchanged(content: CheckpointContent, dataset: JsonlDataset) -> bool:
    """Return whether a touched or copied file still contains the input of every settled span.

    The spans have checksums of their input if the file had no digest when the run began.
    """
    before = content.fingerprint.input if content.fingerprint else ""
    if not before.startswith(f"stat:{dataset.stamp().size}:"):
        return False
    return holds_settled(dataset, content.table)


def holds_settled(dataset: JsonlDataset, table: SpanTable) -> bool:
    """Return whether a file contains the input of every settled span, by their checksums."""
    with opened(dataset.location) as descriptor:
        return all(
            checksum(read_range(descriptor, span.start, span.length)) == span.input_check
            for span, _, _ in table.ordered()
        )


def without_torn(content: CheckpointContent, dataset: JsonlDataset) -> CheckpointContent:
    """Remove the spans next to a gap that do not begin and end with a line; return ``content``.

    A span ends within a line if its file was truncated when the span was read, and is complete
    again now. A span begins within a line if the newline before it was overwritten since: that byte
    is in the gap, which no checksum covers.
    """
    content.table = content.table.without(_torn(content, dataset))
    return content


def _torn(content: CheckpointContent, dataset: JsonlDataset) -> list[int]:
    """Return the starts of the spans that `without_torn` removes."""
    with opened_content(dataset.location) as (source, interval):
        edges = {edge for gap in content.table.gaps(interval) for edge in gap} - {interval.start}
        within = {at for at in edges if read_range(source, at - 1, 1) != b"\n"}
    if not within:
        return []
    spans = (span for span, _, _ in content.table.ordered())
    return [s.start for s in spans if s.start in within or s.start + s.length in within]
