from collections.abc import Iterator
from hashlib import md5
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.library.sorting import spill_lists
from dagster_dataops.library.sorting.first_seen import first_of_equals


def verdicts(values: list[int], max_bytes: int) -> list[bool]:
    """Decide on the digests of ``values``."""
    digests = (md5(str(value).encode(), usedforsecurity=False).digest() for value in values)
    with TemporaryDirectory() as folder:
        return list(first_of_equals(digests, Path(folder), max_bytes))


def brute_force(values: list[int]) -> list[bool]:
    return [value not in values[:place] for place, value in enumerate(values)]


@given(st.lists(st.integers(0, 40)), st.sampled_from([0, 300, 1000, 5000, 1 << 20]))
def test_the_first_of_equals_is_found_with_any_memory_limit(values, max_bytes) -> None:
    assert verdicts(values, max_bytes) == brute_force(values)


def test_a_part_larger_than_memory_is_searched_in_several_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = [number * number % 3001 for number in range(6000)]
    turns = []
    monkeypatch.setattr(
        "dagster_dataops.library.sorting.first_seen.passes",
        lambda *given: turns.append(spill_lists.passes(*given)) or turns[-1],
    )
    few = verdicts(values, 2000)
    assert max(turns) > 2
    assert few == verdicts(values, 1 << 20)
    assert sum(few) == len(set(values))


def test_data_that_fits_into_memory_is_decided_at_once(tmp_path: Path) -> None:
    taken = []

    def digests() -> Iterator[bytes]:
        for number in range(10):
            taken.append(number)
            yield bytes([number % 3]) * 16

    found = first_of_equals(digests(), tmp_path, 1 << 20)
    assert [next(found) for _ in range(4)] == [True, True, True, False]
    assert taken == [0, 1, 2, 3]
    assert not list(tmp_path.iterdir())


def test_entries_beyond_the_memory_limit_are_in_files_and_deleted_part_by_part(
    tmp_path: Path,
) -> None:
    digests = (md5(bytes([n]), usedforsecurity=False).digest() for n in range(200))
    found = first_of_equals(digests, tmp_path, 2000)
    for _ in range(7):
        next(found)
    assert not list(tmp_path.iterdir())
    next(found)  # the first that has to wait for all others
    assert list(found) == [True] * 192
    assert not list(tmp_path.iterdir())
