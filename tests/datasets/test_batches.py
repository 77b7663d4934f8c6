"""Tests of dagster_dataops.datasets.batches."""

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops.datasets.batches import BatchStarts, batches_of
from dagster_dataops.datasets.lines import Interval


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "input.jsonl"


def _numbers(path: Path, intervals: list[Interval], size: int) -> list[list[int]]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = batches_of(descriptor, intervals, 0, size)
        return [[int(line.text) for line in batch] for batch in found]
    finally:
        os.close(descriptor)


def _starts(path: Path, size: int) -> Iterator[int]:
    content = path.read_bytes()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        starts = BatchStarts.of(descriptor, Interval(0, len(content)), size)
        for position in range(len(content) + 1):
            yield starts.at_or_after(position, len(content))
    finally:
        os.close(descriptor)


def test_batches_begin_at_multiples_of_their_size(path: Path) -> None:
    path.write_text("".join(f"{n}\n" for n in range(10)))
    whole = [Interval(0, path.stat().st_size)]
    assert _numbers(path, whole, 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_blank_lines_are_no_records(path: Path) -> None:
    path.write_text("0\n\n1\n \n2\n3\n")
    whole = [Interval(0, path.stat().st_size)]
    assert _numbers(path, whole, 2) == [[0, 1], [2, 3]]


def test_a_batch_ends_with_its_interval(path: Path) -> None:
    path.write_text("".join(f"{n}\n" for n in range(10)))
    assert _numbers(path, [Interval(2, 6), Interval(12, 20)], 4) == [[1, 2], [6, 7], [8, 9]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(0, 40), size=st.integers(1, 9), cuts=st.sets(st.integers(0, 45)))
def test_intervals_cut_at_starts_of_batches_give_the_same_batches(
    path: Path, count: int, size: int, cuts: set[int]
) -> None:
    path.write_text("".join(f"{n:03}\n" for n in range(count)))
    end = path.stat().st_size
    at = list(_starts(path, size))
    edges = sorted({0, end, *(at[min(cut, end)] for cut in cuts)})
    parts = [Interval(*pair) for pair in pairwise(edges)]
    assert _numbers(path, parts, size) == _numbers(path, [Interval(0, end)], size)


def test_the_start_at_or_after_a_position_is_the_end_beyond_the_last_batch(path: Path) -> None:
    path.write_text("0\n1\n2\n3\n4\n")
    assert list(_starts(path, 2)) == [0, 4, 4, 4, 4, 8, 8, 8, 8, 10, 10]
