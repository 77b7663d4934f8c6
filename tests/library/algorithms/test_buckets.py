from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops.library.algorithms.buckets import first_in_buckets


def verdicts(records: list[list[int]], max_bytes: int) -> list[bool]:
    """Decide on records in the buckets of these names."""
    buckets = (
        [xxhash.xxh3_64_intdigest(str(name).encode()) for name in names] for names in records
    )
    with TemporaryDirectory() as folder:
        return list(first_in_buckets(buckets, Path(folder), max_bytes))


def brute_force(records: list[list[int]]) -> list[bool]:
    kept: list[list[int]] = []
    found = []
    for names in records:
        found.append(all(set(names).isdisjoint(other) for other in kept))
        if found[-1]:
            kept.append(names)
    return found


RECORDS = st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4))


@given(RECORDS, st.sampled_from([0, 400, 2000, 10_000, 1 << 20]))
@settings(max_examples=40)
def test_no_two_kept_records_share_a_bucket_with_any_memory_limit(records, max_bytes) -> None:
    assert verdicts(records, max_bytes) == brute_force(records)


@pytest.mark.parametrize("seed", range(5))
def test_many_records_are_decided_window_by_window(seed: int) -> None:
    random = Random(seed)
    records = [[random.randrange(400) for _ in range(3)] for _ in range(400)]
    assert verdicts(records, 3000) == brute_force(records)


def test_a_dropped_record_takes_no_bucket() -> None:
    chain = [[1, 2], [2, 3], [3, 4], [4, 5]]
    for max_bytes in (1 << 20, 0):
        assert verdicts(chain, max_bytes) == [True, False, True, False]


def test_no_input_gives_no_output(tmp_path: Path) -> None:
    assert list(first_in_buckets(iter([]), tmp_path, 0)) == []
