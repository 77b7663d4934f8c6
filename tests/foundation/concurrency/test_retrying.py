"""Pauses between tries, and failures that follow one another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.foundation.concurrency.retrying import STOP, Backoff, FailureRow


@given(st.floats(0.001, 10), st.floats(0.1, 100), st.integers(1, 10_000))
def test_a_pause_is_at_least_half_of_what_doubling_gives(
    first: float, longest: float, number: int
) -> None:
    most = min(first * 2.0 ** min(number - 1, 100), longest)
    assert most / 2 <= Backoff(first, longest).pause(number) <= most


def test_callers_do_not_pause_equally_long() -> None:
    assert len({Backoff(1.0, 60.0).pause(3) for _ in range(20)}) > 10


@pytest.mark.parametrize(
    ("limit", "pauses", "expected"),
    [
        (0, (), [0.0] * 7),
        (1, (), [STOP] * 7),
        (3, (), [0.0, 0.0, STOP, 0.0, 0.0, STOP, 0.0]),
        (2, (1.0, 4.0), [0.0, 1.0, 0.0, 4.0, 0.0, STOP, 0.0]),
    ],
)
def test_each_row_of_failures_pauses_the_calls_until_the_last_one_stops_them(
    limit: int, pauses: tuple[float, ...], expected: list[float]
) -> None:
    row = FailureRow(limit, pauses)
    assert [row.failed() for _ in range(7)] == expected


def test_a_success_begins_again() -> None:
    row = FailureRow(2, (1.0,))
    assert [row.failed(), row.failed()] == [0.0, 1.0]
    row.succeeded()
    assert [row.failed(), row.failed(), row.failed(), row.failed()] == [0.0, 1.0, 0.0, STOP]


def test_kinds_of_failures_are_counted_apart() -> None:
    row = FailureRow(2)
    assert [row.failed("a"), row.failed("b"), row.failed("a")] == [0.0, 0.0, STOP]
