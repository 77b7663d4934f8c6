"""Settled: a span together with the bytes that are written for it."""

from typing import NamedTuple

import xxhash

from dagster_dataops.checkpoints.spans import Span


class Settled(NamedTuple):
    """A span, its result lines and its error lines."""

    span: Span
    output: bytes | bytearray
    errors: bytes

    @classmethod
    def of(  # noqa: PLR0913 - what a span consists of
        cls,
        start: int,
        source: bytes | memoryview,
        *,
        records: int,
        emitted: int,
        dropped: int,
        failed: int,
        output: bytes | bytearray,
        errors: bytes,
        check_input: bool,
    ) -> "Settled":
        """Return the span of the input bytes ``source``, which begin at ``start``.

        Args:
            start: Byte position in the input.
            source: The input bytes, newlines included.
            records: Input records.
            emitted: Result records.
            dropped: Input records that emitted nothing and did not fail.
            failed: Input records that failed.
            output: The result lines; handed over, not to be changed again.
            errors: The error lines.
            check_input: Whether the span is to carry a checksum of its input.
        """
        digest = xxhash.xxh3_64(output)
        digest.update(errors)
        span = Span(
            start=start,
            length=len(source),
            records=records,
            emitted=emitted,
            dropped=dropped,
            failed=failed,
            output_bytes=len(output),
            error_bytes=len(errors),
            input_check=xxhash.xxh3_64_intdigest(source) & 0xFFFFFFFF if check_input else 0,
            output_check=digest.intdigest() & 0xFFFFFFFF,
        )
        return cls(span, output, errors)
