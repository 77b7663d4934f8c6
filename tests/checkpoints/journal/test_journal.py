"""Journals: frames, entries, positions, stored outcomes, and the maps of published results."""

import os
import random
from pathlib import Path

import pytest
import xxhash

from dagster_dataops.checkpoints.journal import journal_writer
from dagster_dataops.checkpoints.journal.frames import JournalFrame, json_frame, read_spans
from dagster_dataops.checkpoints.journal.journal_reader import AttemptEntry, StagesEntry
from dagster_dataops.checkpoints.journal.kept_journal import KeptJournal
from dagster_dataops.checkpoints.journal.positions import NOTHING, Extent, intact, without_stages
from dagster_dataops.checkpoints.journal.span import ReopenedEntry
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.checkpoints.journal.stored_outcomes import StoredOutcome, outcomes_in
from dagster_dataops.errors import StorageError
from dagster_dataops.operators.outcomes.dispositions import dropped_for, emitting
from tests.journals import (
    FrameKind,
    JournalWriter,
    Position,
    Span,
    SpansEntry,
    frame,
    line_digest,
    read_frames,
    read_journal,
    read_positions,
    spans_frame,
)

_FRAMED = [Span(n * 10, 10, 1, 1, 0, 0, 5, 0, n, n) for n in range(12)]
_FRAMES = [
    frame(FrameKind.ATTEMPT, b'{"run":"one"}'),
    spans_frame(SpansEntry.of(1, 0, _FRAMED[:3])),
    spans_frame(SpansEntry.of(2, 77, _FRAMED)),
    frame(FrameKind.SPANS, b""),
    frame(FrameKind.ATTEMPT, b'{"run":"DOJ1 DOJ1"}'),
    frame(FrameKind.ATTEMPT, b"DOJ1" * 5),
]
_JOURNAL = b"".join(_FRAMES)
_ENDS = [sum(map(len, _FRAMES[: count + 1])) for count in range(len(_FRAMES))]
_WHOLE = list(read_frames(_JOURNAL))


def test_frames_come_back_as_they_were_written() -> None:
    assert [item.kind for item in _WHOLE] == [1, 2, 2, 2, 1, 1]
    assert b"".join(frame(FrameKind(item.kind), item.payload) for item in _WHOLE) == _JOURNAL


def test_a_journal_cut_at_any_byte_yields_the_whole_frames_before_the_cut() -> None:
    for cut in range(len(_JOURNAL) + 1):
        complete = sum(end <= cut for end in _ENDS)
        assert list(read_frames(_JOURNAL[:cut])) == _WHOLE[:complete], cut


def test_frames_appended_after_a_torn_one_are_read() -> None:
    for cut in range(1, len(_FRAMES[2])):
        torn = _FRAMES[0] + _FRAMES[2][:cut] + _FRAMES[1]
        assert list(read_frames(torn)) == [_WHOLE[0], _WHOLE[1]], cut


def test_a_flipped_bit_costs_no_other_frame() -> None:
    for position in range(len(_JOURNAL)):
        damaged = bytearray(_JOURNAL)
        damaged[position] ^= 1 << (position % 8)
        hit = sum(end <= position for end in _ENDS)
        left = [item for place, item in enumerate(_WHOLE) if place != hit]
        assert list(read_frames(bytes(damaged))) == left, position


def test_damage_costs_no_attempt() -> None:
    journal = json_frame(FrameKind.ATTEMPT, {"run": "one"})
    journal += json_frame(FrameKind.ATTEMPT, {"run": "one"})  # a retry of the same run
    journal += _FRAMES[1]
    whole = list(read_frames(journal))
    assert whole == [_WHOLE[0], _WHOLE[0], _WHOLE[1]]
    for position in range(len(journal) - len(_FRAMES[1])):
        damaged = bytearray(journal)
        damaged[position] ^= 1 << (position % 8)
        assert list(read_frames(bytes(damaged))) == whole, position


def test_an_incomplete_attempt_and_a_copy_do_not_count() -> None:
    attempt = json_frame(FrameKind.ATTEMPT, {"run": "one"})
    for cut in range(len(attempt) + 1):
        expected = _WHOLE[:1] if cut >= len(_FRAMES[0]) else []
        assert list(read_frames(attempt[:cut])) == expected, cut
    assert list(read_frames(frame(FrameKind.COPY, b""))) == []


def test_noise_never_yields_a_frame_that_was_not_written() -> None:
    chance = random.Random(3)
    for _ in range(300):
        pieces = [chance.randbytes(chance.randrange(40)) + item for item in _FRAMES]
        noisy = bytearray(b"".join(pieces))
        for _ in range(chance.randrange(6)):
            noisy[chance.randrange(len(noisy))] = chance.randrange(256)
        assert set(read_frames(bytes(noisy))) <= set(_WHOLE)


@pytest.mark.parametrize("data", [b"", b"DOJ1", b"DOJ1" * 100, b"\0" * 50], ids=repr)
def test_data_without_frames_yields_none(data: bytes) -> None:
    assert list(read_frames(data)) == []


def test_spans_come_back_with_their_place() -> None:
    assert read_spans(_WHOLE[2].payload) == SpansEntry.of(2, 77, _FRAMED)


@pytest.mark.parametrize("payload", [b"", b"x", b"\0" * 20, _WHOLE[1].payload[:-1]], ids=len)
def test_an_invalid_payload_of_spans_is_skipped(payload: bytes) -> None:
    assert read_spans(payload) is None


def test_the_kind_is_part_of_the_checksum() -> None:
    damaged = bytearray(_FRAMES[1])
    damaged[4] = FrameKind.ATTEMPT
    assert list(read_frames(bytes(damaged))) == []
    assert list(read_frames(_FRAMES[1])) == [JournalFrame(FrameKind.SPANS, _WHOLE[1].payload)]


_PLACE_BYTES = 17  # segment, offset, number of spans, whether notes precede
_THREE = [Span(n * 10, 10, 1, 1, 0, 0, 5, 0, n, n) for n in range(3)]
_READ_STAGES = [{"stage": "read_jsonl", "options": "1"}]
_AT_ONE = Position(1, 4, bytes(16), b"{}", NOTHING)


def _written(tmp_path: Path) -> JournalWriter:
    return JournalWriter(tmp_path / "journal")


def test_every_entry_comes_back_as_it_was_written(tmp_path: Path) -> None:
    writer = _written(tmp_path)
    one = SpansEntry.of(1, 50, _THREE[:1])
    several = SpansEntry.of(2, 0, _THREE, [bytes([n]) * 16 for n in range(3)])
    reopened, parts = ReopenedEntry([10], retries=True), SpansEntry.of(3, 7, _THREE[1:])
    writer.attempt({"run": "one"})
    writer.spans(one)
    writer.spans(several)
    writer.reopened(reopened, parts)
    writer.reopened(reopened, None)
    writer.stages(_READ_STAGES)
    writer.position(_AT_ONE)
    writer.close()
    assert list(read_journal(tmp_path / "journal")) == [
        AttemptEntry({"run": "one"}),
        one,
        several,
        reopened,
        parts,
        reopened,
        StagesEntry(_READ_STAGES),
        _AT_ONE,
    ]
    assert read_positions(tmp_path / "journal") == (_READ_STAGES, [_AT_ONE])


def test_digests_and_notes_of_damaged_spans_are_not_those_of_the_next_spans(tmp_path: Path) -> None:
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


_TWELVE = [Span(n * 10, 10, 1, 1, 0, 0, 5, 0, n, n) for n in range(12)]
_APPENDED = [
    frame(FrameKind.ATTEMPT, b'{"run":"one"}'),
    spans_frame(SpansEntry.of(1, 0, _TWELVE[:3])),
    spans_frame(SpansEntry.of(2, 77, _TWELVE)),
]


def test_appending_starts_where_another_writer_ended(tmp_path: Path) -> None:
    for item in _APPENDED:
        journal = JournalWriter(tmp_path / "journal")
        journal.append(item)
        journal.sync()
        journal.close()
        journal.close()
    assert (tmp_path / "journal").read_bytes() == b"".join(_APPENDED)


def test_a_failed_write_leaves_no_half_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = JournalWriter(tmp_path / "journal")
    journal.append(_APPENDED[0])

    def half(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="No space left"):
        patch.setattr(journal_writer, "write_all", half)
        journal.append(_APPENDED[2])
    journal.append(_APPENDED[1])
    journal.close()
    assert (tmp_path / "journal").read_bytes() == _APPENDED[0] + _APPENDED[1]


def test_a_journal_that_cannot_be_opened_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="open the journal"):
        JournalWriter(tmp_path / "missing" / "journal")


def test_a_journal_that_was_not_finished_is_removed(tmp_path: Path) -> None:
    (tmp_path / "input.jsonl").write_bytes(b"{}\n")
    path = tmp_path / "journal"
    with (tmp_path / "input.jsonl").open("rb") as source:
        with (
            pytest.raises(KeyboardInterrupt),
            KeptJournal(path, source.fileno(), check_input=False),
        ):
            assert path.exists()
            raise KeyboardInterrupt
        assert not path.exists()
        with KeptJournal(path, source.fileno(), check_input=False) as keeping:
            keeping.finish({}, {})
    assert path.exists()


def test_a_finished_journal_survives_a_power_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that is written to it is synced: its size is that of the last sync."""
    (tmp_path / "input.jsonl").write_bytes(b"{}\n")
    path = tmp_path / "journal"
    synced: list[tuple[int, int]] = []

    def sync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced.append((status.st_ino, status.st_size))

    monkeypatch.setattr(os, "fdatasync", sync)
    with (
        (tmp_path / "input.jsonl").open("rb") as source,
        KeptJournal(path, source.fileno(), check_input=False) as keeping,
    ):
        keeping.finish({}, {})
    assert synced[-1:] == [(path.stat().st_ino, path.stat().st_size)]


STAGES = [{"stage": "read_jsonl", "options": "1"}]


def position(text: bytes, items: int) -> Position:
    digest = xxhash.xxh3_128(text).digest()
    return Position(items, len(text), digest, without_stages({"stages": STAGES, "position": [1]}))


def journal(path: Path, *positions: Position) -> Path:
    written = JournalWriter(path / "journal")
    written.stages(STAGES)
    for one in positions:
        written.position(one)
    written.close()
    return path / "journal"


def test_positions_are_read_in_the_order_in_which_they_were_taken(tmp_path: Path) -> None:
    taken = [position(b"one\n", 1), position(b"one\ntwo\n", 2)]
    known = read_positions(journal(tmp_path, *taken))
    assert known == (STAGES, taken)
    assert known.positions[0].state_of(STAGES) == {"stages": STAGES, "position": [1]}


def test_a_missing_journal_is_empty(tmp_path: Path) -> None:
    assert read_positions(tmp_path / "journal") == (None, [])


def test_a_torn_position_is_none(tmp_path: Path) -> None:
    path = journal(tmp_path, position(b"one\n", 1), position(b"one\ntwo\n", 2))
    path.write_bytes(path.read_bytes()[:-1])
    assert [one.items for one in read_positions(path).positions] == [1]


def test_a_state_may_hold_values_that_orjson_cannot_encode(tmp_path: Path) -> None:
    state = {"position": [2**70, "\ud800"], "stages": STAGES}
    found = Position(0, 0, b"", without_stages(state))
    assert found.state_of(STAGES) == state


def test_positions_count_if_the_segment_is_unchanged_before_them(tmp_path: Path) -> None:
    segment = tmp_path / "segment"
    taken = [position(b"one\n", 1), position(b"one\ntwo\n", 2), position(b"one\ntwo\nthree\n", 3)]
    segment.write_bytes(b"one\ntwo\nthree\nand half a li")
    assert [one.items for one in intact(taken, segment, tmp_path / "quarantine")] == [3, 2, 1]
    segment.write_bytes(b"one\ntwo\nthr")
    assert [one.items for one in intact(taken, segment, tmp_path / "quarantine")] == [2, 1]
    segment.write_bytes(b"one\nTWO\nthree\n")
    assert [one.items for one in intact(taken, segment, tmp_path / "quarantine")] == [1]
    segment.unlink()
    assert intact(taken, segment, tmp_path / "quarantine") == []


def test_of_positions_behind_the_same_bytes_the_last_comes_first(tmp_path: Path) -> None:
    (tmp_path / "segment").write_bytes(b"one\n")
    taken = [position(b"one\n", 1)._replace(state=state) for state in (b"1", b"2")]
    assert [one.state for one in intact(taken, tmp_path / "segment", tmp_path / "quarantine")] == [
        b"2",
        b"1",
    ]


def test_positions_count_if_the_quarantine_file_is_unchanged_before_them(tmp_path: Path) -> None:
    segment, quarantine = tmp_path / "segment", tmp_path / "quarantine"
    segment.write_bytes(b"one\ntwo\nthree\n")
    kept = [NOTHING, *(Extent(len(text), xxhash.xxh3_128(text).digest()) for text in (b"a", b"ab"))]
    texts = (b"one\n", b"one\ntwo\n", b"one\ntwo\nthree\n")
    taken = [
        position(text, items + 1)._replace(quarantined=extent)
        for items, (text, extent) in enumerate(zip(texts, kept, strict=True))
    ]
    assert [one.items for one in intact(taken, segment, quarantine)] == [1]
    for content, wanted in ((b"", [1]), (b"a", [2, 1]), (b"abc", [3, 2, 1]), (b"Ab", [1])):
        quarantine.write_bytes(content)
        assert [one.items for one in intact(taken, segment, quarantine)] == wanted
    assert read_positions(journal(tmp_path, *taken)).positions == taken


_DIGESTS = [line_digest(b"%d" % number) for number in range(4)]


def _span(number: int, output: int, *, error: int = 0) -> Span:
    return Span(
        start=number * 10,
        length=10,
        records=1,
        emitted=1 if output else 0,
        dropped=0,
        failed=1 if error else 0,
        output_bytes=output,
        error_bytes=error,
        input_check=0,
        output_check=number,
    )


def _frames(segment: int, offset: int, spans: list[Span], digests: list[bytes]) -> bytes:
    return spans_frame(SpansEntry.of(segment, offset, spans, digests))


def _outcomes(tmp_path: Path, journal: bytes) -> list[StoredOutcome]:
    (tmp_path / "journal").write_bytes(journal)
    return list(outcomes_in(tmp_path / "journal"))


def test_outcomes_lie_one_after_the_other_behind_the_errors_of_records_that_failed(
    tmp_path: Path,
) -> None:
    spans = [_span(0, 5), _span(1, 0, error=100), _span(2, 7), _span(3, 3)]
    assert _outcomes(tmp_path, _frames(1, 50, spans, _DIGESTS)) == [
        StoredOutcome(_DIGESTS[0], 1, 50, 5, 1, 0),
        StoredOutcome(_DIGESTS[2], 1, 155, 7, 1, 2),
        StoredOutcome(_DIGESTS[3], 1, 162, 3, 1, 3),
    ]


def test_a_record_that_failed_has_no_outcome_even_if_lines_are_there(tmp_path: Path) -> None:
    spans = [_span(0, 5, error=9), _span(1, 6)]
    (only,) = _outcomes(tmp_path, _frames(1, 0, spans, _DIGESTS[:2]))
    assert only.digest == _DIGESTS[1]


def test_digests_whose_spans_are_damaged_are_not_taken_for_those_of_the_next(
    tmp_path: Path,
) -> None:
    first = _frames(1, 0, [_span(0, 5)], _DIGESTS[:1])
    second = _frames(1, 5, [_span(1, 6)], _DIGESTS[1:2])
    between = second.index(b"DOJ1", 4)  # where the digests end and the spans begin
    damaged = bytearray(first)
    damaged[-1] ^= 1  # in the first spans
    assert _outcomes(tmp_path, bytes(damaged) + second[between:]) == []
    (only,) = _outcomes(tmp_path, bytes(damaged) + second)
    assert only.digest == _DIGESTS[1]


def test_digests_before_other_spans_count_for_nothing(tmp_path: Path) -> None:
    first = _frames(1, 0, [_span(0, 5)], _DIGESTS[:1])
    second = _frames(1, 5, [_span(1, 6)], _DIGESTS[1:2])
    between = second.index(b"DOJ1", 4)  # where the digests end and the spans begin
    assert _outcomes(tmp_path, first[:between] + second[between:]) == []
    assert len(_outcomes(tmp_path, first[:between] + first[between:])) == 1


def test_digests_of_another_number_of_spans_count_for_nothing(tmp_path: Path) -> None:
    frames = _frames(1, 0, [_span(0, 5), _span(1, 6)], _DIGESTS[:1])
    assert _outcomes(tmp_path, frames) == []
