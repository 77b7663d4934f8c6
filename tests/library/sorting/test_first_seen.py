"""Tests of repeated digests in partitions."""

from random import Random

import pytest

from dagster_dataops.library.sorting.first_seen import firsts_in, in_order, split_digests


@pytest.mark.parametrize("memory", [1 << 14, 1 << 30])
@pytest.mark.parametrize("partitions", [1, 3, 256])
def test_the_first_of_equal_digests_is_found_in_partitions(memory: int, partitions: int) -> None:
    draw = Random(3)
    values = [draw.randbytes(16) for _ in range(900)]
    digests = draw.choices(values, k=3000)
    ranges = [digests[start : start + 300] for start in range(0, 3000, 300)]
    split = [split_digests(b"".join(some), partitions) for some in ranges]
    decided = [
        list(firsts_in([parts[number] for parts, _ in split], memory))
        for number in range(partitions)
    ]
    seen: set[bytes] = set()
    for place, (some, (_, order)) in enumerate(zip(ranges, split, strict=True)):
        firsts = list(in_order([flags[place] for flags in decided], order))
        with pytest.raises(ValueError, match="decided over 299 of 300 digests"):
            in_order([b"\1" * 299], order)
        for digest, first in zip(some, firsts, strict=True):
            assert first == (digest not in seen)
            seen.add(digest)
