from pathlib import Path

from dagster_dataops.checkpoints.journal.journal_reader import AttemptEntry, StagesEntry
from dagster_dataops.checkpoints.journal.positions import NOTHING, Position
from dagster_dataops.checkpoints.journal.span import ReopenedEntry
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.operators.outcomes.dispositions import dropped_for, emitting
from tests.journals import (
    FrameKind,
    JournalWriter,
    Span,
    SpansEntry,
    frame,
    read_journal,
    read_positions,
    spans_frame,
)

_PLACE_BYTES = 17  # segment, offset, number of spans, whether notes precede
_SPANS = [Span(n * 10, 10, 1, 1, 0, 0, 5, 0, n, n) for n in range(3)]
_STAGES = [{"stage": "read_jsonl", "options": "1"}]
_POSITION = Position(1, 4, bytes(16), b"{}", NOTHING)


def _written(tmp_path: Path) -> JournalWriter:
    return JournalWriter(tmp_path / "journal")


def test_every_entry_comes_back_as_it_was_written(tmp_path: Path) -> None:
    writer = _written(tmp_path)
    one = SpansEntry.of(1, 50, _SPANS[:1])
    several = SpansEntry.of(2, 0, _SPANS, [bytes([n]) * 16 for n in range(3)])
    reopened, parts = ReopenedEntry([10], retries=True), SpansEntry.of(3, 7, _SPANS[1:])
    writer.attempt({"run": "one"})
    writer.spans(one)
    writer.spans(several)
    writer.reopened(reopened, parts)
    writer.reopened(reopened, None)
    writer.stages(_STAGES)
    writer.position(_POSITION)
    writer.close()
    assert list(read_journal(tmp_path / "journal")) == [
        AttemptEntry({"run": "one"}),
        one,
        several,
        reopened,
        parts,
        reopened,
        StagesEntry(_STAGES),
        _POSITION,
    ]
    assert read_positions(tmp_path / "journal") == (_STAGES, [_POSITION])


def test_digests_and_notes_of_damaged_spans_are_not_those_of_the_next_spans(
    tmp_path: Path,
) -> None:
    """A span without output lies at the same place as the next one."""
    empty, full = Span(0, 10, 1, 0, 1, 0, 0, 0, 0, 0), Span(10, 10, 1, 2, 0, 0, 5, 0, 1, 1)
    notes = [SpanNotes.of(1, [(0, one)], {}) for one in (dropped_for("short"), emitting(2))]
    first = spans_frame(SpansEntry.of(1, 0, [empty], [b"a" * 16], notes[:1]))
    own = SpansEntry.of(1, 0, [full], [b"b" * 16], notes[1:])
    digests = len(frame(FrameKind.DIGESTS, b"")) + _PLACE_BYTES + 16
    for damaged, expected in ((0, [own._replace(digests=None)]), (digests, [])):
        journal = bytearray(first + spans_frame(own))
        journal[len(first) - 1] ^= 1  # of the first spans
        journal[len(first) + damaged] ^= 1  # of the digests, or of the notes of the next ones
        (tmp_path / "journal").write_bytes(journal)
        assert list(read_journal(tmp_path / "journal")) == expected


def test_a_missing_journal_has_no_entries(tmp_path: Path) -> None:
    assert list(read_journal(tmp_path / "journal")) == []


def test_malformed_payloads_are_left_out_or_unknown(tmp_path: Path) -> None:
    writer = _written(tmp_path)
    for kind in (FrameKind.SPANS, FrameKind.DIGESTS, FrameKind.POSITION, FrameKind.STAGES):
        writer.append(frame(kind, b"[]"))
    for payload in (b"{", b"[]"):
        writer.append(frame(FrameKind.ATTEMPT, payload))
    writer.append(frame(FrameKind.REOPENED, b"1234"))
    writer.close()
    assert list(read_journal(tmp_path / "journal")) == [AttemptEntry(None)] * 2
