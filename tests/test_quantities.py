"""Tests of dagster_dataops.quantities."""

import pytest

from dagster_dataops.quantities import counted


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 records"), (1, "1 record"), (2, "2 records"), (1234, "1,234 records")],
)
def test_the_unit_agrees_with_the_number(number, text):
    assert counted(number, "records") == text
