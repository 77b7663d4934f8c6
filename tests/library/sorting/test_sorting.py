"""Sorting, ranking and looking up more than memory holds."""

import math
import struct
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops.errors import StorageError
from dagster_dataops.library.sorting.external_sort import Entry, ExternalSort
from dagster_dataops.library.sorting.first_values import first_of_values
from dagster_dataops.library.sorting.keyed_lines import KeyedLines
from dagster_dataops.library.sorting.ordered_keys import ordered_key
from dagster_dataops.library.sorting.ranking import Ranking, first_of_groups
from dagster_dataops.library.sorting.spill_lists import SpillLists

KEYS = st.binary(max_size=3).map(lambda key: key + bytes(3 - len(key)))


@given(
    entries=st.lists(st.tuples(KEYS, st.binary(max_size=200))),
    max_bytes=st.sampled_from([0, 300, 2000, 1 << 20]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_entries_are_sorted_and_equal_keys_stay_in_order(
    tmp_path: Path, entries: list[tuple[bytes, bytes]], max_bytes: int
) -> None:
    sorted_entries = ExternalSort(tmp_path, max_bytes)
    for key, data in entries:
        sorted_entries.add(key, data)
    numbered = [Entry(key, number, data) for number, (key, data) in enumerate(entries, 1)]
    expected = sorted(numbered, key=lambda entry: (entry.key, entry.number))
    assert list(sorted_entries) == expected
    assert list(sorted_entries) == expected
    assert list(sorted_entries.data()) == [entry.data for entry in expected]


@pytest.mark.slow
def test_many_files_are_merged_in_several_steps(tmp_path: Path) -> None:
    entries = ExternalSort(tmp_path, 1)
    numbers = [number * 7919 % 5000 for number in range(5000)]
    for number in numbers:
        entries.add(number.to_bytes(8), b"")
    assert [int.from_bytes(entry.key) for entry in entries] == list(range(5000))
    assert len(list(tmp_path.iterdir())) <= 64


def test_a_disk_that_refuses_is_named(tmp_path: Path) -> None:
    entries = ExternalSort(tmp_path / "missing", 1, name="left")
    with pytest.raises(StorageError, match="missing/left-000000: cannot write"):
        entries.add(b"a", b"")
    lists = SpillLists(tmp_path / "missing", 1, ENTRY, 0)
    with pytest.raises(StorageError, match="missing/000000: cannot write"):
        lists.add(0, ENTRY.pack(1, 1))


_PEAK = """
import resource, sys, tempfile
from pathlib import Path
import orjson
from dagster_dataops.library.sorting.external_sort import ExternalSort

count, size, entries = int(sys.argv[1]), int(sys.argv[2]), ExternalSort(
    Path(tempfile.mkdtemp(dir=sys.argv[3])), 32 << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for number in range(count):
    line = orjson.dumps({"id": number, "text": "x" * size})
    entries.add((number * 7919 % count).to_bytes(8), line)
assert sum(1 for _ in entries) == count
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize(("count", "size"), [(400_000, 10), (200_000, 180), (30_000, 3000)])
def test_memory_stays_below_the_limit(tmp_path: Path, count: int, size: int) -> None:
    run = [sys.executable, "-c", _PEAK, str(count), str(size), str(tmp_path)]
    found = subprocess.run(run, check=True, capture_output=True, text=True)
    assert int(found.stdout) <= 32 << 10  # KB


# Also digests whose end and the position after them look like the digest of another line.
DIGESTS = st.binary(min_size=16, max_size=16) | st.sampled_from(
    [bytes(16), bytes(15) + b"\1", bytes(8) + b"\1" + bytes(7), b"\xff" * 16]
)


@given(st.lists(st.tuples(st.none() | DIGESTS, st.binary(max_size=9))), DIGESTS)
def test_lines_are_found_by_their_digests(
    rows: list[tuple[bytes | None, bytes]], other: bytes
) -> None:
    lines, expected = KeyedLines(), defaultdict(list)
    written = []
    for digest, content in rows:
        line = content.replace(b"\n", b"") + b"\n"
        lines.add(digest, line)
        written.append(line)
        if digest is not None:
            expected[digest].append(line)
    lines.sort()
    for digest in [*expected, other]:
        assert [lines.line(place) for place in lines.places(digest)] == expected.get(digest, [])
    assert [line for _, line in lines] == written
    assert lines.size == sum(map(len, written)) + 24 * sum(map(len, expected.values()))
    lines.clear()
    assert (list(lines), lines.size) == ([], 0)


LARGE = st.integers(-(2**63), 2**64 - 1)
NEAR = st.sampled_from([2**53, 2**62, -(2**53), -(2**62), 2**63]).flatmap(
    lambda middle: st.integers(middle - 3, middle + 3)
)
NUMBERS = st.one_of(
    LARGE, NEAR, st.integers(-3, 3), st.floats(allow_nan=False), NEAR.map(float), st.booleans()
)
TEXTS = st.text(st.characters(), max_size=5) | st.text("\0\x01a\xff", max_size=5)
VALUES = st.none() | NUMBERS | TEXTS | st.just(math.nan)


def rank(value: Any) -> tuple[Any, ...]:
    """Return what Python sorts as documented: numbers, texts by code points, missing values."""
    if value is None or value != value:
        return (2,)
    return (1, value) if isinstance(value, str) else (0, value)


@given(VALUES, VALUES)
def test_keys_compare_as_the_values_do(one: Any, other: Any) -> None:
    first, second = (ordered_key(value, reverse=False) for value in (one, other))
    assert (first < second) == (rank(one) < rank(other))
    assert (first == second) == (rank(one) == rank(other))


@given(VALUES, VALUES)
def test_reversed_keys_have_the_other_order_but_missing_values_stay_last(
    one: Any, other: Any
) -> None:
    first, second = (ordered_key(value, reverse=True) for value in (one, other))
    if len(rank(one)) == len(rank(other)):
        assert (first < second) == (rank(one) > rank(other))
    else:
        assert (first < second) == (rank(one) < rank(other))


@given(st.lists(VALUES, min_size=2, max_size=2), st.lists(VALUES, min_size=2, max_size=2))
def test_keys_of_several_columns_are_joined(first: list[Any], second: list[Any]) -> None:
    keys = [b"".join(ordered_key(one, reverse=False) for one in row) for row in (first, second)]
    ranks = [list(map(rank, row)) for row in (first, second)]
    assert (keys[0] < keys[1]) == (ranks[0] < ranks[1])
    assert keys[0] == keys[1] or not keys[1].startswith(keys[0])


RANKED = st.none() | st.integers(-3, 3) | st.sampled_from([1.5, 2**53 + 1, 2**53 + 2, "a", "b"])
LIMITS = st.sampled_from([0, 500, 1 << 20])
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def first(records: list[tuple[bytes, bytes]], most: Any) -> list[bool]:
    """Return for each group and key whether it is one of the first of its group."""
    sizes = Counter(group for group, _ in records)
    seen: Counter[bytes] = Counter()
    chosen = [False] * len(records)
    for position in sorted(range(len(records)), key=lambda one: (records[one][1], one)):
        group = records[position][0]
        seen[group] += 1
        chosen[position] = seen[group] <= most(group, sizes[group])
    return chosen


@given(
    records=st.lists(
        st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.binary(min_size=1, max_size=1))
    ),
    most=st.integers(0, 5),
    max_bytes=LIMITS,
)
@in_one_folder
def test_the_first_of_each_group_are_kept(
    tmp_path: Path, records: Any, most: int, max_bytes: int
) -> None:
    expected = first(records, lambda _, __: most)
    assert list(first_of_groups(records, most, tmp_path, max_bytes)) == expected
    shares = Ranking(records, tmp_path, max_bytes)
    assert dict(shares.sizes()) == Counter(group for group, _ in records)
    expected = first(records, lambda _, size: size // 2)
    assert list(shares.first(lambda _, size: size // 2)) == expected


@given(
    values=st.one_of(st.lists(RANKED), st.lists(st.integers()), st.lists(st.text(max_size=2))),
    most=st.integers(0, 5),
    max_bytes=LIMITS,
    reverse=st.booleans(),
)
@in_one_folder
def test_the_first_values_are_kept(
    tmp_path: Path, values: Any, most: int, max_bytes: int, reverse: bool
) -> None:
    values = [one if not isinstance(one, int) else max(-(2**63), min(one, 2**63)) for one in values]
    records = [(b"", ordered_key(value, reverse=reverse)) for value in values]
    found = first_of_values(iter(values), most, tmp_path, max_bytes, reverse=reverse)
    assert list(found) == first(records, lambda _, __: most)


def test_values_of_many_blocks_are_compared_with_those_kept_so_far(tmp_path: Path) -> None:
    for values in (
        [number * 7919 % 20_011 for number in range(20_000)],
        [f"{number * 7919 % 20_011:05}" for number in range(20_000)],
        [0.5, None, "a", *range(20_000)],
    ):
        for reverse in (False, True):
            records = [(b"", ordered_key(value, reverse=reverse)) for value in values]
            found = first_of_values(iter(values), 100, tmp_path, 1 << 20, reverse=reverse)
            assert list(found) == first(records, lambda _, __: 100)


ENTRY = struct.Struct("<QI")


@pytest.mark.parametrize("max_bytes", [0, 12, 40, 1 << 20])
def test_lists_are_read_in_the_order_they_were_written(tmp_path: Path, max_bytes: int) -> None:
    lists = SpillLists(tmp_path, 3, ENTRY, max_bytes)
    for number in range(50):
        lists.add(number % 3, ENTRY.pack(number, 7))
    assert [lists.size(number) for number in range(3)] == [17, 17, 16]
    for _ in range(2):
        assert list(lists.read(1)) == [(number, 7) for number in range(1, 50, 3)]
    assert bool(list(tmp_path.iterdir())) == (max_bytes < 1 << 20)
    for number in range(3):
        lists.drop(number)
    assert (list(lists.read(1)), list(tmp_path.iterdir())) == ([], [])
