"""Reopening: the failed records of an unfinished run are to be tried again by later attempts.

Failures of an outage say nothing of their records. What succeeded in the spans that hold them stays
settled where it is: nothing is copied.
"""

from collections.abc import Iterator
from pathlib import Path

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.failed import FailedRecord, failed_records
from dagster_dataops.checkpoints.keeping import parts_between
from dagster_dataops.checkpoints.reading import SegmentReader
from dagster_dataops.checkpoints.segments import checksum
from dagster_dataops.checkpoints.spans import Span
from dagster_dataops.checkpoints.table import SpanTable
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.files import read_range


def reopen_failed(checkpoint: Checkpoint, dataset: JsonlDataset) -> None:
    """Let the failed records of a checkpoint count as not tried, durably.

    Args:
        checkpoint: Of a run that ended without a result.
        dataset: Its input.
    """
    with dataset.path.open("rb") as source:
        descriptor = source.fileno() if dataset.fingerprint is None else None
        parts = [
            (part, segment, offset + at)
            for segment, offset, span, output in _with_failed(checkpoint.folder, checkpoint.table)
            for part, at in _parts(span, output, descriptor)
        ]
    checkpoint.reopen_failed(parts)
    checkpoint.sync()


def first_failure(folder: Path, table: SpanTable) -> FailedRecord | None:
    """Return the first failed record of a checkpoint that can be read, ``None`` if none can."""
    for _, _, span, output in _with_failed(folder, table):
        return failed_records(output[span.output_bytes :])[0]
    return None


def _with_failed(folder: Path, table: SpanTable) -> Iterator[tuple[int, int, Span, bytes]]:
    """Yield segment, offset, span, and result and error lines of spans that hold failed records.

    Damaged ones are left out.
    """
    reader = SegmentReader(folder)
    try:
        for span, segment, offset in table.with_failed():
            output = reader.read(segment, offset, span.output_bytes + span.error_bytes)
            if checksum(output) == span.output_check:
                yield segment, offset, span, output
    finally:
        reader.close()


def _parts(span: Span, output: bytes, source: int | None) -> Iterator[tuple[Span, int]]:
    """Yield the parts of a span that did not fail, and where in its output each begins.

    They carry a checksum of their input if that is open as ``source``.
    """
    failed = failed_records(output[span.output_bytes :])
    for first, last in parts_between(span, [record.place for record in failed]):
        records, lines = last.records - first.records, output[first.output : last.output]
        if records:
            start, length = first.start, last.start - first.start
            given = b"" if source is None else read_range(source, start, length)
            part = Span(
                start=start,
                length=length,
                records=records,
                emitted=lines.count(b"\n"),
                dropped=last.dropped - first.dropped,
                failed=0,
                output_bytes=len(lines),
                error_bytes=0,
                input_check=0 if source is None else checksum(given),
                output_check=checksum(lines),
            )
            yield part, first.output
