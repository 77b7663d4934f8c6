"""Spans: consecutive input records with one entry in the journal, and their packed form there."""

import zlib
from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from dagster_dataops.checkpoints.journal.span_notes import IntArray, SpanNotes


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
    dropped: int = 0
    failed: int = 0
    output_bytes: int = 0
    error_bytes: int = 0
    input_check: int = 0
    output_check: int = 0


class SpansEntry(NamedTuple):
    """Settled spans whose outputs lie one after the other in one segment.

    Attributes:
        segment: Number of the segment with their outputs.
        offset: Where in the segment the first output starts.
        columns: The fields of `Span`, an array each, in the order of the outputs.
        digests: Of the input of each span, by which outcomes are found; ``None`` without any.
        notes: Of each span; ``None`` if no span has any.
    """

    segment: int
    offset: int
    columns: list[IntArray]
    digests: list[bytes] | None = None
    notes: Sequence[SpanNotes | None] | None = None

    @classmethod
    def of(
        cls,
        segment: int,
        offset: int,
        spans: Sequence[Span],
        digests: list[bytes] | None = None,
        notes: Sequence[SpanNotes | None] = (),
    ) -> Self:
        """Return the entry of spans; ``notes`` may be empty if no span has any."""
        return cls(segment, offset, columns_of(spans), digests, notes if any(notes) else None)

    @property
    def output_bytes(self) -> int:
        """Bytes of result and error lines in the segment."""
        return sum(self.columns[OUTPUT]) + sum(self.columns[ERRORS])


class ReopenedEntry(NamedTuple):
    """Revoked spans, because records in them are to be tried again.

    Attributes:
        starts: Byte positions of the spans in the input.
        retries: Whether their failed records are retried on request. Otherwise an outage made them
            fail.
    """

    starts: list[int]
    retries: bool


# One array per field: a journal of a million spans is loaded with a few memory copies. Sizes in
# bytes may exceed 4 GiB, because one record may become many.
COLUMN_TYPES: Final = tuple("QQIIIIQQII")
OUTPUT, ERRORS = Span._fields.index("output_bytes"), Span._fields.index("error_bytes")
_COMPRESS_FROM: Final = 8


def columns_of(spans: Sequence[Span]) -> list[IntArray]:
    """Return the fields of ``spans``, each as one array."""
    columns = zip(*spans, strict=True)
    return [array(kind, column) for kind, column in zip(COLUMN_TYPES, columns, strict=True)]


def pack(columns: list[IntArray]) -> bytes:
    """Return the fields of spans as bytes, compressed where that pays."""
    data = b"".join(columns)
    many = len(columns[0]) >= _COMPRESS_FROM
    return b"Z" + zlib.compress(data, 1) if many else b"R" + data


def unpack(data: bytes, count: int) -> list[IntArray]:
    """Return the fields of ``count`` packed spans.

    Raises:
        ValueError: ``data`` is not ``count`` packed spans.
    """
    try:
        plain = zlib.decompress(data[1:]) if data[:1] == b"Z" else data[1:]
    except zlib.error as error:
        raise ValueError(str(error)) from None
    columns = []
    at = 0
    for kind in COLUMN_TYPES:
        column = array(kind)
        end = at + count * column.itemsize
        column.frombytes(plain[at:end])
        at = end
        columns.append(column)
    if at != len(plain) or any(len(column) != count for column in columns):
        msg = f"{len(plain)} bytes are not {count} spans"
        raise ValueError(msg)
    return columns
