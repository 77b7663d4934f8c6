from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops.library.sorting.ordered_keys import ordered_key
from dagster_dataops.library.sorting.ranking import Ranking, first_of_groups, first_of_values

VALUES = st.none() | st.integers(-3, 3) | st.sampled_from([1.5, 2**53 + 1, 2**53 + 2, "a", "b"])
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
    values=st.one_of(st.lists(VALUES), st.lists(st.integers()), st.lists(st.text(max_size=2))),
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
