"""Tests of repeated digests in partitions."""

from array import array
from random import Random

from dagster_dataops.library.sorting.first_seen import repeats_in, split_digests


def test_repeats_in_a_partition_are_found_with_little_memory() -> None:
    digests = [(number << 40).to_bytes(8) * 2 for number in Random(3).choices(range(900), k=3000)]
    ranges = [digests[start : start + 300] for start in range(0, 3000, 300)]
    parts = [split_digests(enumerate(some), 1)[0] for some in ranges]
    found = list(repeats_in(parts, 1 << 14))
    assert found == list(repeats_in(parts, 1 << 30))
    seen: set[bytes] = set()
    for some, numbers in zip(ranges, found, strict=True):
        expected = []
        for number, digest in enumerate(some):
            expected += [number] * (digest in seen)
            seen.add(digest)
        assert array("I", numbers).tolist() == expected
