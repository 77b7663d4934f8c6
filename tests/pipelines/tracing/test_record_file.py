"""Tests of dagster_dataops.pipelines.tracing.record_file."""

import random
from pathlib import Path

import pytest

from dagster_dataops.pipelines.tracing import record_file
from dagster_dataops.pipelines.tracing.record_file import FoundLine, RecordFile

FOREIGN = b'\xef\xbb\xbf{"a":1}\r\n\n  \n{"a":2}\n{"a":3}  \n\n{"a":4}'


@pytest.fixture
def foreign(tmp_path: Path) -> RecordFile:
    (tmp_path / "in.jsonl").write_bytes(FOREIGN)
    return RecordFile(tmp_path / "in.jsonl", ours=False)


def test_blank_lines_are_no_records_but_are_counted_as_lines(foreign: RecordFile) -> None:
    found = foreign.find([0, 1, 2, 3, 4])
    assert found == {
        0: FoundLine(1, b'{"a":1}'),
        1: FoundLine(4, b'{"a":2}'),
        2: FoundLine(5, b'{"a":3}'),
        3: FoundLine(7, b'{"a":4}'),
    }
    assert foreign.count() == 4


@pytest.mark.parametrize(
    ("line", "index"), [(1, 0), (2, None), (3, None), (4, 1), (5, 2), (6, None), (7, 3), (8, None)]
)
def test_a_line_is_found_by_its_number(foreign: RecordFile, line: int, index: int | None) -> None:
    assert foreign.index_of(line) == index


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"")
    empty = RecordFile(tmp_path / "in.jsonl", ours=True)
    assert (empty.find([0]), empty.index_of(1), empty.count()) == ({}, None, 0)


@pytest.mark.parametrize("ours", [True, False])
def test_records_are_found_across_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: bool
) -> None:
    monkeypatch.setattr(record_file, "BLOCK_BYTES", 64)
    chance = random.Random(1)
    lines = [b'{"n":%d,"t":"%s"}' % (n, b"x" * chance.randrange(90)) for n in range(200)]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    records = RecordFile(tmp_path / "in.jsonl", ours=ours)
    wanted = chance.sample(range(200), 30)
    assert records.find(wanted) == {at: FoundLine(at + 1, lines[at]) for at in wanted}
    assert [records.index_of(at + 1) for at in wanted] == wanted
    assert records.count() == 200
