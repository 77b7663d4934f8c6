"""Tests of dagster_dataops.foundation.quantities."""

import pytest

from dagster_dataops.foundation.quantities import counted, percentage


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 records"), (1, "1 record"), (2, "2 records"), (1234, "1,234 records")],
)
def test_the_unit_agrees_with_the_number(number, text):
    assert counted(number, "records") == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0.0 %"),
        (0.00049, "0.05 %"),
        (0.001, "0.1 %"),
        (2 / 3, "66.7 %"),
        (0.9999, "99.9 %"),
        (1, "100.0 %"),
        (1.5, "150.0 %"),
    ],
)
def test_a_percentage_is_zero_only_for_none_and_a_hundred_only_for_all(share, text):
    assert percentage(share) == text
