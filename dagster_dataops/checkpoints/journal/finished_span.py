"""FinishedSpan: a span together with its result and error lines."""

from typing import NamedTuple

from dagster_dataops.checkpoints.journal.segments import checksum
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes


class FinishedSpan(NamedTuple):
    """A span, its result lines, its error lines and its notes."""

    span: Span
    output: bytes | bytearray
    errors: bytes
    notes: SpanNotes | None = None

    @classmethod
    def of(  # noqa: PLR0913 - the fields of a span
        cls,
        start: int,
        length: int,
        *,
        records: int,
        emitted: int,
        dropped: int,
        failed: int,
        output: bytes | bytearray,
        errors: bytes,
        source: bytes | memoryview | None = None,
        notes: SpanNotes | None = None,
    ) -> "FinishedSpan":
        """Return the span of ``length`` input bytes from ``start`` on, newlines included.

        Args:
            start: Byte position in the input.
            length: Number of input bytes.
            records: Number of input records.
            emitted: Number of result records.
            dropped: Number of input records that emitted nothing and did not fail.
            failed: Number of input records that failed.
            output: The result lines; the caller must not change them afterwards.
            errors: The error lines.
            source: The input bytes, if the span is to carry their checksum.
            notes: Its notes.
        """
        span = Span(
            start=start,
            length=length,
            records=records,
            emitted=emitted,
            dropped=dropped,
            failed=failed,
            output_bytes=len(output),
            error_bytes=len(errors),
            input_check=checksum(source) if source is not None else 0,
            output_check=checksum(output, errors),
        )
        return cls(span, output, errors, notes)
