import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.errors import StorageError
from dagster_dataops.library.sorting.spill_lists import BitArray, SpillLists, passes

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


def test_a_disk_that_refuses_is_named(tmp_path: Path) -> None:
    lists = SpillLists(tmp_path / "missing", 1, ENTRY, 0)
    with pytest.raises(StorageError, match="missing/000000: cannot write"):
        lists.add(0, ENTRY.pack(1, 1))


@given(st.lists(st.booleans()))
def test_bits_are_read_as_they_were_set(wanted: list[bool]) -> None:
    bits = BitArray(len(wanted))
    for position, value in enumerate(wanted):
        if value:
            bits.set(position)
    assert list(bits) == wanted


def test_passes_are_as_few_as_memory_allows() -> None:
    assert [passes(100, 10, room) for room in (10_000, 1000, 999, 500, 0)] == [1, 1, 2, 2, 1000]
    assert passes(0, 10, 0) == 1
