"""Samples: bounded in what is read, spread over the file, whole where it is small."""

import itertools
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.record_samples import first_records, spread_sample
from dagster_dataops.errors import InputError


def dataset(folder: Path, lines: list[bytes], end: bytes = b"\n") -> JsonlDataset:
    path = folder / "records.jsonl"
    path.write_bytes(b"\n".join(lines) + end)
    return JsonlDataset.of_file(path)


def numbered(count: int, width: int = 0) -> list[bytes]:
    return [orjson.dumps({"id": number, "fill": "x" * width}) for number in range(count)]


def ids(records: list) -> list[int]:
    return [record["id"] for record in records]


def test_a_small_file_is_taken_whole(tmp_path: Path) -> None:
    sample = spread_sample(dataset(tmp_path, numbered(100)), 100)
    assert sample.whole
    assert ids(sample.records) == list(range(100))


def test_of_more_records_both_ends_and_those_at_equal_distances_are_taken(tmp_path: Path) -> None:
    sample = spread_sample(dataset(tmp_path, numbered(101)), 11)
    assert not sample.whole
    assert ids(sample.records) == list(range(0, 101, 10))


@pytest.mark.parametrize("end", [b"\n", b""], ids=["newline at the end", "none"])
def test_a_large_file_is_sampled_from_its_first_record_to_its_last(
    tmp_path: Path, end: bytes
) -> None:
    sample = spread_sample(dataset(tmp_path, numbered(20_000, width=200), end), 1000)
    found = ids(sample.records)
    assert not sample.whole
    assert found == sorted(set(found))
    assert (found[0], found[-1]) == (0, 19_999)
    assert 900 <= len(found) <= 1008
    gaps = [after - before for before, after in itertools.pairwise(found)]
    assert max(gaps) < 20_000 / 10


def test_lines_longer_than_a_block_are_passed_over_unless_they_are_all_there_is(
    tmp_path: Path,
) -> None:
    mixed = [*numbered(10, width=300_000), *numbered(50_000)]
    found = ids(spread_sample(dataset(tmp_path, mixed), 100).records)
    assert found[-1] == 49_999
    alone = spread_sample(dataset(tmp_path, numbered(10, width=300_000)), 100)
    assert ids(alone.records) == [0]
    none = spread_sample(dataset(tmp_path, numbered(2, width=5 << 20)), 100)
    assert none.records == []


@pytest.mark.parametrize("lines", [[], [b"", b"  "], [b"no json", b"[1]", b"5"]])
def test_what_is_no_record_is_left_out(tmp_path: Path, lines: list[bytes]) -> None:
    found = dataset(tmp_path, [*lines, b'{"id":1}', *lines])
    assert ids(spread_sample(found, 10).records) == [1]
    assert ids(first_records(found, 10, 1000)) == [1]
    assert spread_sample(dataset(tmp_path, []), 10).records == []


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_records(tmp_path: Path) -> None:
    found = dataset(tmp_path, [b'\xef\xbb\xbf{"id":0}\r', b'{"id":1}\r'])
    assert ids(spread_sample(found, 10).records) == [0, 1]
    assert ids(first_records(found, 10, 1000)) == [0, 1]


@given(width=st.integers(0, 400), max_bytes=st.integers(0, 3000), count=st.integers(1, 20))
def test_first_records_are_the_first_and_end_where_they_may(
    tmp_path_factory: pytest.TempPathFactory, width: int, max_bytes: int, count: int
) -> None:
    lines = numbered(10, width)
    found = ids(first_records(dataset(tmp_path_factory.mktemp("d"), lines), count, max_bytes))
    assert found == list(range(len(found)))
    assert 1 <= len(found) <= min(count, 10)
    size = sum(len(line) + 1 for line in lines[: len(found)])
    assert size <= max_bytes or len(found) == 1


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    gone = JsonlDataset(tmp_path / "gone.jsonl", 5)
    with pytest.raises(InputError, match="no such file"):
        spread_sample(gone, 5)
