"""Checks of the number of records."""

import pytest

from dagster_dataops import checks
from tests.assets.checks.finding import Find
from tests.assets.helpers import numbered


@pytest.mark.parametrize(
    ("rows", "passed", "text"),
    [
        (0, False, "0 records, fewer than 1."),
        (1, True, "1 record."),
        (3, True, "3 records."),
        (4, False, "4 records, more than 3."),
    ],
)
def test_row_count_has_two_bounds(rows: int, passed: bool, text: str, find: Find) -> None:
    finding = find(checks.row_count(min=1, max=3), list(numbered(rows)))
    assert (finding.passed, finding.text) == (passed, text)
    assert finding.numbers == {"rows": rows}


def test_row_count_with_one_bound_checks_only_that_bound(find: Find) -> None:
    assert find(checks.row_count(max=3), []).passed
    assert find(checks.row_count(min=3), list(numbered(9))).passed
