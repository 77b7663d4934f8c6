"""KeptJournal: maps input records to the bytes of an output, without the failed records.

It is the journal of a checkpoint whose only segment is this output. Only the failed records are
open in this checkpoint, so a run that continues it retries only these records.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import xxhash

from dagster_dataops.checkpoints.journal.failed_record import FailedRecord
from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.checkpoints.journal.segments import checksum
from dagster_dataops.checkpoints.journal.span import Span, SpansEntry
from dagster_dataops.checkpoints.journal.span_notes import (
    Counts,
    Number,
    SpanNotes,
    add_counts,
    joined,
)
from dagster_dataops.checkpoints.journal.stored_outcomes import span_digests
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.foundation.places.range_source import Readable, read_range

SEGMENT: Final = 1  # the only one
LEAST_BYTES: Final = 2 << 10  # of outputs that are left there: each run of them costs an entry
_PIECE_BYTES: Final = 1 << 20
_BATCH_SPANS: Final = 4096


class SpanCut(NamedTuple):
    """A place between two records of a span: how many records and output bytes come before it."""

    start: int
    records: int = 0
    output: int = 0
    dropped: int = 0


def parts_between(span: Span, failed: Sequence[FailedRecord]) -> Iterator[tuple[SpanCut, SpanCut]]:
    """Yield start and end of each part of a span before, between and after its failed records.

    There is one part more than there are failed records. Some parts hold no records.
    """
    end = span.start + span.length
    before = SpanCut(span.start)
    for record in failed:
        yield before, SpanCut(record.offset, record.position, record.output, record.dropped)
        after = min(record.offset + record.length + 1, end)
        before = SpanCut(after, record.position + 1, record.output, record.dropped)
    yield before, SpanCut(end, span.records, span.output_bytes, span.dropped)


class _Piece:
    """Consecutive records that did not fail, from one span or several."""

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.records = self.emitted = self.dropped = self.size = 0
        self._digest = xxhash.xxh3_64()
        self._notes: list[tuple[int, SpanNotes | None]] = []
        self._counts: Counts = {}

    @property
    def notes(self) -> SpanNotes | None:
        """The notes of the piece."""
        return joined(self._notes, self._counts)

    def add(
        self,
        end: int,
        records: int,
        emitted: int,
        dropped: int,
        output: bytes,
        notes: SpanNotes | None,
    ) -> None:
        self._notes.append((records, notes))
        if notes is not None:
            add_counts(self._counts, notes.counts)
        self.end = end
        self.records += records
        self.dropped += dropped
        self.emitted += emitted
        self.size += len(output)
        self._digest.update(output)

    def holds(self, start: int, end: int, size: int) -> bool:
        """Return whether more bytes from ``start`` on fit into a megabyte of input and output."""
        return start >= self.end and max(end - self.start, self.size + size) <= _PIECE_BYTES

    def span(self, source: Readable | None) -> Span:
        """Return the piece as one span; with a checksum of its input if ``source`` is given."""
        length = self.end - self.start
        return Span(
            start=self.start,
            length=length,
            records=self.records,
            emitted=self.emitted,
            dropped=self.dropped,
            output_bytes=self.size,
            input_check=0 if source is None else checksum(read_range(source, self.start, length)),
            output_check=self._digest.intdigest() & 0xFFFFFFFF,
        )


class KeptJournal:
    """Writes such a journal; without `finish` there is none.

    Args:
        path: The file, such as a draft; replaced.
        source: Descriptor of the input.
        check_input: Whether spans must carry a checksum of their input.
        apart: Whether spans stay as they are, with digests of their input, so that outcomes of
            single records are found by it; else spans are joined.
    """

    def __init__(
        self, path: Path, source: Readable, *, check_input: bool, apart: bool = False
    ) -> None:
        with storage(path, "replace the file"):
            path.unlink(missing_ok=True)
        self._journal = JournalWriter(path)
        self._source = source
        self._check_input = check_input
        self._apart = apart
        self._piece: _Piece | None = None
        self._spans: list[Span] = []
        self._notes: list[SpanNotes | None] = []
        self._kept_counts: Counts = {}
        self._offset = 0  # of the first of these in the output
        self._finished = False

    def add(
        self,
        span: Span,
        output: bytes,
        failed: Sequence[FailedRecord],
        notes: SpanNotes | None = None,
    ) -> None:
        """Add the next span of the input.

        Args:
            span: The span.
            output: Its result lines, which are the next lines of the output; lines that follow
                them are ignored.
            failed: Its failed records, in order.
            notes: Its notes.
        """
        if self._apart and not failed:
            self._take(span, notes)
            return
        for number, (first, last) in enumerate(parts_between(span, failed)):
            if number:
                self._end_piece()
            part = notes.part(first.records, last.records) if notes and failed else notes
            emitted = None if failed else span.emitted
            self._keep(first, last, output, part, emitted)
        if self._apart:
            self._end_piece()

    def _keep(
        self,
        first: SpanCut,
        last: SpanCut,
        output: bytes,
        notes: SpanNotes | None,
        emitted: int | None,
    ) -> None:
        """Add a part of a span; the lines of a whole one are known, and need not be counted."""
        records = last.records - first.records
        if not records:  # there may be blank lines
            return
        size = last.output - first.output
        if self._piece is not None and not self._piece.holds(first.start, last.start, size):
            self._end_piece()
        if self._piece is None:
            self._piece = _Piece(first.start)
        kept = output[first.output : last.output]
        rows = kept.count(b"\n") if emitted is None else emitted
        self._piece.add(last.start, records, rows, last.dropped - first.dropped, kept, notes)

    def _end_piece(self) -> None:
        if self._piece is not None:
            source = self._source if self._check_input else None
            self._take(self._piece.span(source), self._piece.notes)
            self._piece = None

    def _take(self, span: Span, notes: SpanNotes | None) -> None:
        self._spans.append(span)
        self._notes.append(notes)
        if notes is not None:
            add_counts(self._kept_counts, notes.counts)
        if len(self._spans) >= _BATCH_SPANS:
            self._write_spans()

    def _write_spans(self) -> None:
        if self._spans:
            digests = span_digests(self._source, self._spans, self._notes) if self._apart else None
            entry = SpansEntry.of(SEGMENT, self._offset, self._spans, digests, self._notes)
            self._journal.spans(entry)
            self._offset += entry.output_bytes
            self._spans.clear()
            self._notes.clear()

    def finish(self, attempts: dict[str, Any], counts: Mapping[str, Number]) -> None:
        """Make the journal durable.

        Args:
            attempts: The attempts that made the output.
            counts: Sums of the operator's counts, also of failed records.
        """
        self._end_piece()
        self._write_spans()
        others = {name: count - self._kept_counts.get(name, 0) for name, count in counts.items()}
        self._journal.attempt({**attempts, "counts": others})
        self._journal.sync()
        self._finished = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()
        if not self._finished:
            with suppress(OSError):  # the next attempt deletes the draft
                self._journal.path.unlink(missing_ok=True)
