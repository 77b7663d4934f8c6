"""Spans: consecutive input records settled together, and the table of all that are settled."""

import zlib
from array import array
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from dagster_dataops.datasets.lines import Interval

Column: TypeAlias = "array[int]"


class Span(NamedTuple):
    """One settled span.

    Attributes:
        start: Byte position of its first line in the input.
        length: Input bytes, newlines included.
        records: Input records.
        emitted: Result records.
        dropped: Input records that emitted nothing and did not fail.
        failed: Input records that failed.
        output_bytes: Bytes of result lines at its place in the segment.
        error_bytes: Bytes of error lines that follow them.
        input_check: Checksum of the input bytes.
        output_check: Checksum of result and error lines.
    """

    start: int
    length: int
    records: int
    emitted: int
    dropped: int
    failed: int
    output_bytes: int
    error_bytes: int
    input_check: int
    output_check: int


# One array a field: a journal of a million spans loads by a few memory copies.
_TYPES: Final = ("Q", *"IIIIIIIII")
_COMPRESS_FROM: Final = 8


def columns_of(spans: list[Span]) -> list[Column]:
    """Return the fields of ``spans``, each as one array."""
    return [
        array(kind, column) for kind, column in zip(_TYPES, zip(*spans, strict=True), strict=True)
    ]


def pack(spans: list[Span]) -> bytes:
    """Return ``spans`` as bytes, field by field, compressed where that pays."""
    data = b"".join(column.tobytes() for column in columns_of(spans))
    return b"z" + zlib.compress(data, 1) if len(spans) >= _COMPRESS_FROM else b"r" + data


def unpack(data: bytes, count: int) -> list[Column]:
    """Return the fields of ``count`` packed spans.

    Raises:
        ValueError: ``data`` is not ``count`` packed spans.
    """
    try:
        plain = zlib.decompress(data[1:]) if data[:1] == b"z" else data[1:]
    except zlib.error as error:
        raise ValueError(str(error)) from None
    columns = []
    at = 0
    for kind in _TYPES:
        column = array(kind)
        end = at + count * column.itemsize
        column.frombytes(plain[at:end])
        at = end
        columns.append(column)
    if at != len(plain) or any(len(column) != count for column in columns):
        msg = f"{len(plain)} bytes are not {count} spans"
        raise ValueError(msg)
    return columns


class SpanTable:
    """Every settled span and where its output lies."""

    def __init__(self) -> None:
        self._columns = [array(kind) for kind in _TYPES]
        self._segments = array("I")
        self._offsets = array("Q")
        self.records = 0
        self.failed = 0
        self.input_bytes = 0

    def __len__(self) -> int:
        return len(self._segments)

    def add(self, columns: list[Column], segment: int, offset: int) -> None:
        """Add spans whose outputs lie one after the other from ``offset`` in ``segment``."""
        for mine, theirs in zip(self._columns, columns, strict=True):
            mine.extend(theirs)
        for output_bytes, error_bytes in zip(columns[6], columns[7], strict=True):
            self._segments.append(segment)
            self._offsets.append(offset)
            offset += output_bytes + error_bytes
        self.input_bytes += sum(columns[1])
        self.records += sum(columns[2])
        self.failed += sum(columns[5])

    def ordered(self) -> Iterator[tuple[Span, int, int]]:
        """Yield (span, segment, offset) in input order."""
        for row in self._rows():
            span = Span(*(column[row] for column in self._columns))
            yield span, self._segments[row], self._offsets[row]

    def lies_in_order(self, segment: int) -> bool:
        """Whether each output in ``segment`` is where it belongs in the result as a whole."""
        position = 0
        for row in self._rows():
            if self._segments[row] == segment and self._offsets[row] != position:
                return False
            position += self._columns[6][row]
        return True

    def _rows(self) -> list[int]:
        starts = self._columns[0]
        return sorted(range(len(starts)), key=starts.__getitem__)

    def without(self, rejected: Iterable[int]) -> "SpanTable":
        """Return the table less the spans that start at ``rejected``."""
        refused = set(rejected)
        starts = self._columns[0]
        return self._only(row for row in range(len(starts)) if starts[row] not in refused)

    def without_overlaps(self) -> "SpanTable":
        """Return the table with the latest of spans that overlap, as a damaged one's successor."""
        starts, lengths = self._columns[0], self._columns[1]
        refused: set[int] = set()
        cluster: list[int] = []
        end = 0
        for row in self._rows():
            if starts[row] >= end:
                refused.update(self._older(cluster))
                cluster = []
            cluster.append(row)
            end = max(end, starts[row] + lengths[row])
        refused.update(self._older(cluster))
        if not refused:
            return self
        return self._only(row for row in range(len(self)) if row not in refused)

    def _older(self, cluster: list[int]) -> Iterator[int]:
        """Yield the rows of ``cluster`` that overlap one added after them."""
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

    def _only(self, rows: Iterable[int]) -> "SpanTable":
        table = SpanTable()
        for row in rows:
            columns = [array(c.typecode, [c[row]]) for c in self._columns]
            table.add(columns, self._segments[row], self._offsets[row])
        return table

    def gaps(self, content: Interval) -> list[Interval]:
        """Return what of ``content`` is not settled, in order."""
        starts, lengths = self._columns[0], self._columns[1]
        gaps = []
        position = content.start
        for row in self._rows():
            if starts[row] > position:
                gaps.append(Interval(position, starts[row]))
            position = max(position, starts[row] + lengths[row])
        if position < content.end:
            gaps.append(Interval(position, content.end))
        return gaps
