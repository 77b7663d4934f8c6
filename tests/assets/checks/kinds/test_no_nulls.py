"""Checks of null values."""

from dagster_dataops import checks
from tests.assets.checks.finding import Find


def test_null_and_missing_values_are_found(find: Find) -> None:
    rows = [{"text": ""}, {"text": None}, {"other": 1}, {"text": 0}]
    finding = find(checks.no_nulls("text"), rows)
    assert [(row["line"], row["problem"]) for row in finding.rows()] == [
        (2, "text is null"),
        (3, "text is missing"),
    ]
