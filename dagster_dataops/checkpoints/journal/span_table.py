"""SpanTable: every settled span and the location of its output.

Each field is an array, and passes over all rows run inside the interpreter's own loops: a million
spans take a fraction of a second.
"""

from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate, compress, islice
from operator import add, eq, gt, lt
from typing import Final, NamedTuple

from dagster_dataops.checkpoints.journal.span import (
    COLUMN_TYPES,
    ERRORS,
    OUTPUT,
    Span,
    SpansEntry,
)
from dagster_dataops.checkpoints.journal.span_notes import Counts, IntArray, SpanNotes, add_counts
from dagster_dataops.datasets.lines import Interval

_PLACE: Final = [
    Span._fields.index(n) for n in ("start", "emitted", "output_bytes", "output_check")
]


class _Order(NamedTuple):
    """The rows of a table in input order, and the bytes [start, end) of each."""

    rows: IntArray
    starts: IntArray
    ends: IntArray


class SpanTable:
    """Every settled span and where its output lies.

    Attributes:
        notes: The notes of spans that have any, by where the span starts.
        counts: Sums of what the operator counted, also in spans that were removed since.
    """

    def __init__(self) -> None:
        self._columns = [array(kind) for kind in COLUMN_TYPES]
        self._segments = array("I")
        self._offsets = array("Q")
        self.records = 0
        self.failed = 0
        self.input_bytes = 0
        self.notes: dict[int, SpanNotes] = {}
        self.counts: Counts = {}
        self._known_order: _Order | None = None  # reset when a span is added

    def __len__(self) -> int:
        return len(self._segments)

    def add(self, entry: SpansEntry) -> None:
        """Add spans."""
        columns, notes = entry.columns, entry.notes
        count = len(columns[0])
        self._known_order = None
        if notes or self.notes:
            self._add_notes(columns[0], notes or [None] * count)
        for mine, theirs in zip(self._columns, columns, strict=True):
            mine.extend(theirs)
        sizes = map(add, columns[OUTPUT], columns[ERRORS])
        self._segments.extend(array("I", [entry.segment]) * count)
        self._offsets.extend(islice(accumulate(sizes, initial=entry.offset), count))
        self.input_bytes += sum(columns[1])
        self.records += sum(columns[2])
        self.failed += sum(columns[5])

    def _add_notes(self, starts: Iterable[int], notes: Iterable[SpanNotes | None]) -> None:
        """Set the notes of spans; a span without notes may replace a damaged one with notes."""
        for start, note in zip(starts, notes, strict=True):
            if note is not None:
                self.notes[start] = note.shared()
                add_counts(self.counts, note.counts)
            else:
                self.notes.pop(start, None)

    def ordered(self) -> Iterator[tuple[Span, int, int]]:
        """Yield (span, segment, offset) in input order."""
        rows = self._order().rows
        fields = zip(*[map(column.__getitem__, rows) for column in self._columns], strict=True)
        segments = map(self._segments.__getitem__, rows)
        return zip(
            map(Span._make, fields), segments, map(self._offsets.__getitem__, rows), strict=True
        )

    def places(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """Yield the location of each output without error lines, in input order.

        Each tuple holds: start of the span, result records, output bytes, their checksum, segment,
        offset.
        """
        columns = [*(self._columns[field] for field in _PLACE), self._segments, self._offsets]
        rows = self._order().rows
        return zip(*(map(column.__getitem__, rows) for column in columns), strict=True)

    def only_segment(self) -> tuple[int, int] | None:
        """Return the segment that holds the outputs of all spans, if it holds them in input order.

        Returns:
            Its number, and the bytes of the outputs, which begin at its start and have no gaps;
            ``None`` if there is no such segment.
        """
        numbers = set(self._segments)
        if len(numbers) != 1:
            return None
        rows = self._order().rows
        results, errors = self._columns[OUTPUT], self._columns[ERRORS]
        starts = accumulate((results[row] + errors[row] for row in rows), initial=0)
        offsets = map(self._offsets.__getitem__, rows)
        if not all(map(eq, offsets, starts)):
            return None
        return numbers.pop(), next(starts)

    def column(self, field: str) -> IntArray:
        """Return a field of all spans, in input order."""
        column = self._columns[Span._fields.index(field)]
        return array(column.typecode, map(column.__getitem__, self._order().rows))

    @property
    def dropped(self) -> int:
        """Input records that emitted nothing and did not fail."""
        return sum(self._columns[4])

    def _order(self) -> _Order:
        if self._known_order is None:
            self._known_order = self._sorted()
        return self._known_order

    def _sorted(self) -> _Order:
        starts, lengths = self._columns[0], self._columns[1]
        rows = array("Q", sorted(range(len(starts)), key=starts.__getitem__))
        ordered = array("Q", map(starts.__getitem__, rows))
        ends = array("Q", map(add, ordered, map(lengths.__getitem__, rows)))
        return _Order(rows, ordered, ends)

    def without(self, rejected: Iterable[int]) -> "SpanTable":
        """Return the table without the spans that start at ``rejected``."""
        refused = set(rejected)
        if not refused:
            return self
        return self._only([start not in refused for start in self._columns[0]])

    def with_failed(self) -> Iterator[tuple[Span, int, int]]:
        """Yield (span, segment, offset) of the spans that hold failed records, in input order."""
        return (row for row in self.ordered() if row[0].failed)

    def without_overlaps(self) -> "SpanTable":
        """Return the table without overlaps; the latest span replaces earlier, damaged ones."""
        order = self._order()
        if not any(map(gt, order.ends, islice(order.starts, 1, None))):
            return self
        refused: set[int] = set()
        cluster: list[int] = []
        reached = 0
        for row, start, end in zip(*order, strict=True):
            if start >= reached:
                refused.update(self._older(cluster))
                cluster = []
            cluster.append(row)
            reached = max(reached, end)
        refused.update(self._older(cluster))
        return self._only([row not in refused for row in range(len(self))])

    def _older(self, cluster: list[int]) -> Iterator[int]:
        """Yield the rows of ``cluster`` that overlap a row added after them."""
        if len(cluster) < 2:
            return
        kept: list[Interval] = []
        for row in sorted(cluster, reverse=True):
            start = self._columns[0][row]
            end = start + self._columns[1][row]
            if any(start < other.end and other.start < end for other in kept):
                yield row
            else:
                kept.append(Interval(start, end))

    def _only(self, chosen: list[bool]) -> "SpanTable":
        table = SpanTable()
        for mine, theirs in zip(table._columns, self._columns, strict=True):
            mine.extend(compress(theirs, chosen))
        table._segments.extend(compress(self._segments, chosen))
        table._offsets.extend(compress(self._offsets, chosen))
        table.input_bytes = sum(table._columns[1])
        table.records = sum(table._columns[2])
        table.failed = sum(table._columns[5])
        table.counts = self.counts
        if self.notes:
            starts = table._columns[0]
            table.notes = {start: self.notes[start] for start in starts if start in self.notes}
        return table

    def gaps(self, content: Interval) -> list[Interval]:
        """Return the open parts of ``content``, in order; no two spans may overlap."""
        _, starts, ends = self._order()
        if not starts:
            return [content] if content.start < content.end else []
        between = zip(ends, islice(starts, 1, None), strict=False)
        open_ = compress(between, map(lt, ends, islice(starts, 1, None)))
        intervals = [(content.start, starts[0]), *open_, (ends[-1], content.end)]
        return [Interval(start, end) for start, end in intervals if start < end]
