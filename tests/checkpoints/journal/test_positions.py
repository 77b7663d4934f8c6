"""Tests of positions of a stream in a journal."""

from pathlib import Path

import xxhash

from dagster_dataops.checkpoints.journal.positions import (
    NOTHING,
    Extent,
    Position,
    intact,
    without_stages,
)
from tests.journals import JournalWriter, read_positions

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


def test_positions_count_if_the_segment_is_unchanged_before_them(
    tmp_path: Path,
) -> None:
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


def test_positions_count_if_the_quarantine_file_is_unchanged_before_them(
    tmp_path: Path,
) -> None:
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
