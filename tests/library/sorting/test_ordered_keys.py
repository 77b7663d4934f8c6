import math
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from dagster_dataops.library.sorting.ordered_keys import ordered_key, value_of

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


@given(VALUES, st.booleans(), st.binary(max_size=4))
@example(2**53 + 1, False, b"")
def test_a_value_is_read_from_its_key(value: Any, reverse: bool, after: bytes) -> None:
    found = value_of(ordered_key(value, reverse=reverse) + after, reverse=reverse)
    if value is None or value != value:
        assert found is None
    elif isinstance(value, str) or -(2**53) < value < 2**53:
        assert found == value
    else:
        assert found is None
