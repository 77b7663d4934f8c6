"""Options are refused outside of their range; signatures show plain types."""

import inspect
from typing import Annotated, Any

import pytest
from annotated_types import Gt, Interval, Le, Lt

from dagster_dataops import data
from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.options.annotations import check_pairs, plain_type, range_missed
from dagster_dataops.operators.options.ranges import AtLeastZero, Fraction, Percentile, PositiveInt


@pytest.mark.parametrize(
    ("annotation", "inside", "outside", "words"),
    [
        (AtLeastZero, [0, 1], [-1], "at least 0"),
        (PositiveInt, [1, 10**9], [0, -1], "at least 1"),
        (Fraction, [0, 1, 0.5], [-0.1, 1.1], "between 0 and 1"),
        (Fraction | None, [0, 1, None], [2], "between 0 and 1, or None"),
        (Percentile, [0, 100], [101], "between 0 and 100"),
        (Annotated[float, Interval(gt=0, le=1)], [1], [0], "above 0 and at most 1"),
        (Annotated[float, Gt(0), "a text", Lt(1)], [0.5], [0, 1], "above 0 and below 1"),
        (Annotated[int, Le(3)] | str, [3, "a"], [4], "at most 3"),
        (int, [-1], [], ""),
        (Any, [-1, "a"], [], ""),
    ],
)
def test_a_value_outside_a_range_misses_it(
    annotation: Any, inside: list[Any], outside: list[Any], words: str
) -> None:
    assert [range_missed(value, annotation) for value in inside] == [""] * len(inside)
    assert [range_missed(value, annotation) for value in outside] == [words] * len(outside)


def test_plain_types_have_no_ranges() -> None:
    assert plain_type(Fraction) is float
    assert plain_type(Fraction | None) == float | None
    assert plain_type(list[int] | str) == list[int] | str
    assert plain_type(Any) is Any


def test_a_minimum_above_its_maximum_is_refused() -> None:
    check_pairs("a", {"min_len": 3, "max_len": 3, "min_num": None, "max_num": 1, "min_x": 9})
    with pytest.raises(OperatorOptionError, match=r"'min_len' must be at most max_len, which is 2"):
        check_pairs("a", {"max_len": 2, "min_len": 3})
    with pytest.raises(OperatorOptionError, match=r"text.LengthFilter: .* which is 1; got 2"):
        data.text.LengthFilter(2, 1)


def test_operators_refuse_options_outside_of_their_range() -> None:
    said = r"filters.Numbers: option 'max_number_to_text_ratio' must be between 0 and 1, or None; "
    with pytest.raises(OperatorOptionError, match=f"{said}got 15"):
        data.filters.Numbers(max_number_to_text_ratio=15)


def test_signatures_show_plain_types() -> None:
    shown = inspect.signature(data.filters.WordRepetition)

    assert "(*, ngram_size: int = 10, min_ratio: float | None = None" in str(shown)
