"""Outcomes: what became of single records, known by digests of their lines.

Where an operator's outcomes are to be used again, the journal has before every frame of spans one
of digests of their input. So a record that comes again in another input, at another place, is
found, whatever became of the file that it was in.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import xxhash

from dagster_dataops.checkpoints.journal.frames import (
    DIGEST,
    FrameKind,
    PackedDigests,
    PackedSpans,
    read_digests,
    read_frames,
    read_spans,
)
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.datasets.durable_files import read_range, storage

_BLANK: Final = b" \t\r\n"
_NONE: Final = bytes(DIGEST)  # of a span that is not one record


class Outcome(NamedTuple):
    """What became of one record.

    Attributes:
        digest: Of its line.
        segment: Where its result lines are.
        offset: Where in there.
        size: How many bytes.
        emitted: How many records.
        check: Checksum of the lines, as in `Span`.
    """

    digest: bytes
    segment: int
    offset: int
    size: int
    emitted: int
    check: int


def line_digest(line: bytes) -> bytes:
    """Return the digest of a line, whatever white space there is around it."""
    return xxhash.xxh3_128_digest(line.strip(_BLANK))


def span_digests(descriptor: int, spans: Iterable[Span]) -> list[bytes]:
    """Return the digests of spans' input; of what is not one record, one that is no line's.

    Args:
        descriptor: The open input.
        spans: Of it.
    """
    return [
        line_digest(read_range(descriptor, span.start, span.length)) if span.records == 1 else _NONE
        for span in spans
    ]


def digests_in(path: Path, spans: Iterable[Span]) -> list[bytes]:
    """Return what `span_digests` returns for the input at ``path``.

    Raises:
        StorageError: It cannot be read.
    """
    with storage(path, "read it again"):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return span_digests(descriptor, spans)
        finally:
            os.close(descriptor)


def outcomes_in(journal: Path) -> Iterator[Outcome]:
    """Yield what became of records that did not fail, as a journal tells it.

    Spans that no digests belong to, by their place, are passed over.

    Raises:
        StorageError: It cannot be read.
    """
    with storage(journal, "read the journal"):
        data = journal.read_bytes()
    before: PackedDigests | None = None
    for kind, payload in read_frames(data):
        if kind == FrameKind.SPANS and before is not None:
            spans = read_spans(payload)
            if spans is not None and (spans.segment, spans.offset) == before[:2]:
                yield from _outcomes(spans, before.digests)
        before = read_digests(payload) if kind == FrameKind.DIGESTS else None


def _outcomes(spans: PackedSpans, digests: list[bytes]) -> Iterator[Outcome]:
    if len(digests) != len(spans.columns[0]):
        return
    offset = spans.offset
    rows = zip(digests, *spans.columns, strict=True)
    for digest, span in ((digest, Span(*fields)) for digest, *fields in rows):
        if digest != _NONE and not span.failed:
            yield Outcome(
                digest, spans.segment, offset, span.output_bytes, span.emitted, span.output_check
            )
        offset += span.output_bytes + span.error_bytes
