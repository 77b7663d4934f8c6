"""Numbers in lines of text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import parse_numbers


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_what_python_writes_is_read_back(numbers):
    line = " , ".join(map(repr, numbers))

    assert parse_numbers(line, len(numbers)) == numbers


@pytest.mark.parametrize("text", ["5", "5.", ".5", "+5", "-5e-3", " 5 ", "5\r"])
def test_decimal_numbers_are_taken(text):
    assert parse_numbers(text, 1) == [float(text)]


@pytest.mark.parametrize(
    "text", ["", " ", "x", "1.5abc", "0x10", "nan", "inf", "-Infinity", "1_0", "1e999", "1 2", "٣"]
)
def test_everything_else_is_refused(text):
    with pytest.raises(ValueError, match=r"blank|is '"):
        parse_numbers(text, 1)


def test_there_are_as_many_as_there_should_be():
    assert parse_numbers("1\t2", 2, delimiter="\t") == [1, 2]
    with pytest.raises(ValueError, match="it has 3 columns, not 2"):
        parse_numbers("1,2,3", 2)


def cpu_seconds(text):
    """Return the least CPU time of three tries to refuse a text."""
    times = []
    for _ in range(3):
        begun = time.thread_time()
        with pytest.raises(ValueError, match="not a decimal number"):
            parse_numbers(text, 1)
        times.append(time.thread_time() - begun)
    return min(times)


@pytest.mark.parametrize("ending", ["x", ".x", "e", "e+", ".5e5x"])
def test_the_time_to_refuse_a_long_number_grows_with_its_length_only(ending):
    short, long = (cpu_seconds("1" * length + ending) for length in (2_000, 16_000))

    assert long < 24 * short  # 8 times the length; with the square of it, 64 times
