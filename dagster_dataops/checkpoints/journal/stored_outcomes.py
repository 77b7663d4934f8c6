"""Stored outcomes: result lines of single records, found by digests of their input lines.

Where an operator reuses outcomes, the journal holds a digest of the input of every span. A record
that another input holds again, at any place, is found by it. The digest is that of the line, or, if
the notes of the span have a `RecordChange`, of the columns on which the outcome depends.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import xxhash

from dagster_dataops.checkpoints.journal.frames import DIGEST
from dagster_dataops.checkpoints.journal.journal_reader import read_journal
from dagster_dataops.checkpoints.journal.span import Span, SpansEntry
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.datasets.file_values.file_reads import COUNT as READ_FILES
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import Readable, read_range
from dagster_dataops.operators.outcomes.record_context import NUMBERED
from dagster_dataops.records import decode

if TYPE_CHECKING:
    from dagster_dataops.operators.outcomes.record_change import RecordChange

_NOT_OF_RECORD: Final = frozenset({READ_FILES, NUMBERED})  # counts of what is not in the record
_BLANK: Final = b" \t\r\n"
_NONE: Final = bytes(DIGEST)  # of a span that is not one record


class StoredOutcome(NamedTuple):
    """The result lines of one record.

    Attributes:
        digest: Of its input line.
        segment: Number of the segment with the result lines.
        offset: Where in the segment they start.
        size: Their bytes.
        emitted: How many there are.
        check: Their checksum, as in `Span`.
        notes: The packed notes of the record; empty without any.
        change: What of the record it depends on; ``None`` for its whole line.
    """

    digest: bytes
    segment: int
    offset: int
    size: int
    emitted: int
    check: int
    notes: bytes = b""
    change: "RecordChange | None" = None


def line_digest(line: bytes) -> bytes:
    """Return the digest of a line without the white space around it."""
    return xxhash.xxh3_128_digest(line.strip(_BLANK))


def span_digests(
    descriptor: Readable, spans: Iterable[Span], notes: Sequence[SpanNotes | None] = ()
) -> list[bytes]:
    """Return the digest of the input of each span; zeros for a span that is not one record.

    Args:
        descriptor: Of the open input.
        spans: Of this input.
        notes: Of each span; they tell which columns of its record count. Empty without any.
    """
    pairs = zip(spans, notes or repeat(None), strict=False)
    return [
        _digest(read_range(descriptor, span.start, span.length), note)
        if span.records == 1
        else _NONE
        for span, note in pairs
    ]


def _digest(line: bytes, notes: SpanNotes | None) -> bytes:
    change = change_in(notes)
    if change is None:
        return line_digest(line)
    try:
        return change.rule.digest(decode(line))
    except ValueError:  # the record fails
        return line_digest(line)


def change_in(notes: SpanNotes | None) -> "RecordChange | None":
    """Return what an outcome depends on, by its notes; ``None`` for the whole line."""
    if notes is None or not notes.counts:
        return None
    from dagster_dataops.operators.outcomes.record_change import RecordChange  # few have notes

    return RecordChange.of_counts(notes.counts)


def digests_in(
    location: Location, spans: Iterable[Span], notes: Sequence[SpanNotes | None] = ()
) -> list[bytes]:
    """Return the `span_digests` of an input.

    Raises:
        StorageError: It cannot be read.
    """
    with storage(location, "read it again"), opened(location) as source:
        return span_digests(source, spans, notes)


def outcomes_in(journal: Path) -> Iterator[StoredOutcome]:
    """Yield the outcomes of records that did not fail; spans without digests have none.

    Nor have those that were made of files which their records do not identify, or for which the
    operator asked which number in the input the record has.

    Raises:
        StorageError: The journal cannot be read.
    """
    for entry in read_journal(journal):
        if isinstance(entry, SpansEntry) and entry.digests is not None:
            yield from _outcomes(entry, entry.digests)


def _outcomes(spans: SpansEntry, digests: list[bytes]) -> Iterator[StoredOutcome]:
    offset = spans.offset
    rows = zip(digests, spans.notes or repeat(None), *spans.columns, strict=False)
    for digest, notes, span in ((digest, notes, Span(*fields)) for digest, notes, *fields in rows):
        depends = notes is not None and not _NOT_OF_RECORD.isdisjoint(notes.counts)
        if digest != _NONE and not span.failed and not depends:
            yield StoredOutcome(
                digest,
                spans.segment,
                offset,
                span.output_bytes,
                span.emitted,
                span.output_check,
                b"" if notes is None else notes.pack(),
                change_in(notes),
            )
        offset += span.output_bytes + span.error_bytes
