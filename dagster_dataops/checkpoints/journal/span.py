"""Spans: consecutive input records settled together, and how they are packed for the journal."""

import struct
import zlib
from array import array
from typing import Final, NamedTuple

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
    dropped: int
    failed: int
    output_bytes: int
    error_bytes: int
    input_check: int
    output_check: int


class SpansEntry(NamedTuple):
    """Settled spans.

    Attributes:
        segment: Number of the segment with their outputs.
        offset: Where in the segment the first output starts; the others follow.
        columns: The fields of `Span`, an array each.
        digests: Of the input of each span; ``None`` if they were not written.
        notes: Of each span; ``None`` if no span has any.
    """

    segment: int
    offset: int
    columns: list[IntArray]
    digests: list[bytes] | None = None
    notes: list[SpanNotes | None] | None = None


class ReopenedEntry(NamedTuple):
    """Spans that count no more, as records in them are to be tried again.

    Attributes:
        starts: Where in the input they start.
        retries: Whether their failed records are retried alone; else an outage made them fail.
    """

    starts: list[int]
    retries: bool


# One array a field: a journal of a million spans loads by a few memory copies. Sizes in bytes may
# exceed 4 GiB, as what a single record becomes.
COLUMN_TYPES: Final = tuple("QQIIIIQQII")
_ROW: Final = struct.Struct("=" + "".join(COLUMN_TYPES))
_COMPRESS_FROM: Final = 8


def columns_of(spans: list[Span]) -> list[IntArray]:
    """Return the fields of ``spans``, each as one array."""
    columns = zip(*spans, strict=True)
    return [array(kind, column) for kind, column in zip(COLUMN_TYPES, columns, strict=True)]


def pack(columns: list[IntArray]) -> bytes:
    """Return the fields of spans as bytes, compressed where that pays."""
    data = b"".join(columns)
    many = len(columns[0]) >= _COMPRESS_FROM
    return b"Z" + zlib.compress(data, 1) if many else b"R" + data


def pack_one(span: Span) -> bytes:
    """Return what `pack` returns for the columns of one span, in a tenth of the time."""
    return b"R" + _ROW.pack(*span)


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
