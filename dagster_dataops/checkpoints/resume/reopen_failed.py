"""Reopen failed records of an unfinished run, so that the next attempt tries them again.

They are reopened after an outage, which the records did not cause, or if a retry of failed records
was requested. The other records of their spans stay settled: their output is copied to a new
segment.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.journal.failed_record import FailedRecord, failed_records
from dagster_dataops.checkpoints.journal.finished_span import FinishedSpan
from dagster_dataops.checkpoints.journal.kept_journal import SpanCut, parts_between
from dagster_dataops.checkpoints.journal.segment_reader import outputs
from dagster_dataops.checkpoints.journal.span import ReopenedEntry, Span, SpansEntry
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import Readable, read_range


def reopen(
    checkpoint: Checkpoint,
    dataset: JsonlDataset,
    failed: Collection[int] | None = None,
    *,
    retries: bool = False,
) -> None:
    """Reopen failed records of a checkpoint, durably.

    Args:
        checkpoint: The checkpoint of an unfinished run.
        dataset: Its input.
        failed: Byte positions of the records to reopen in the input; ``None`` for all failed ones.
        retries: Whether a retry of only the failed records begins here.
    """
    starts: list[int] = []
    spans: list[Span] = []
    noted: list[SpanNotes | None] = []
    with (
        opened(dataset.location) as source,
        closing(checkpoint.new_segment()) as segment,
    ):
        descriptor = source if dataset.fingerprint is None else None
        for span, output in outputs(checkpoint.segments, checkpoint.table.with_failed(), []):
            records = failed_records(output[span.output_bytes :])
            again = [record for record in records if failed is None or record.offset in failed]
            if again:
                starts.append(span.start)
                stay = [record for record in records if record not in again]
                notes = checkpoint.table.notes.get(span.start)
                for part in _parts(span, output, again, stay, descriptor, notes):
                    segment.append(part.output, part.errors)
                    spans.append(part.span)
                    noted.append(part.notes)
    replacing = SpansEntry.of(segment.number, 0, spans, notes=noted) if spans else None
    checkpoint.reopen(ReopenedEntry(starts, retries), replacing)
    checkpoint.sync()


def first_failure(checkpoint: Checkpoint) -> FailedRecord | None:
    """Return the first failed record of a checkpoint that can be read; ``None`` if none can."""
    for span, output in outputs(checkpoint.segments, checkpoint.table.with_failed(), []):
        return failed_records(output[span.output_bytes :])[0]
    return None


def _parts(
    span: Span,
    output: bytes,
    again: Sequence[FailedRecord],
    stay: Sequence[FailedRecord],
    source: Readable | None,
    notes: SpanNotes | None,
) -> Iterator[FinishedSpan]:
    """Yield a span in parts, without the records that are to be tried ``again``.

    The parts carry a checksum of their input if its descriptor is given as ``source``. The counts
    of the span are not repeated in their notes.
    """
    for first, last in parts_between(span, again):
        records, length = last.records - first.records, last.start - first.start
        if not records:
            continue
        errors = [
            _moved(record, first) for record in stay if first.start <= record.offset < last.start
        ]
        lines = output[first.output : last.output]
        yield FinishedSpan.of(
            first.start,
            length,
            records=records,
            emitted=lines.count(b"\n"),
            dropped=last.dropped - first.dropped,
            failed=len(errors),
            output=lines,
            errors=b"".join(error.line() for error in errors),
            source=None if source is None else read_range(source, first.start, length),
            notes=notes.part(first.records, last.records) if notes else None,
        )


def _moved(record: FailedRecord, first: SpanCut) -> FailedRecord:
    """Return a failed record with its place in the part of its span that starts at ``first``."""
    return record._replace(
        position=record.position - first.records,
        output=record.output - first.output,
        dropped=record.dropped - first.dropped,
    )
