"""Checks of null values."""

from dagster_dataops import checks
from tests.assets.checks.finding import Find


def test_null_and_missing_values_are_found(find: Find) -> None:
    rows = [{"text": ""}, {"text": None}, {"other": 1}, {"text": 0}]
    finding = find(checks.no_nulls("text"), rows)
    assert finding.text == "2 of 4 records lack a value in text."
    assert [(row["line"], row["problem"]) for row in finding.rows()] == [
        (2, "text is null"),
        (3, "text is missing"),
    ]


def test_a_check_that_passes_says_what_no_record_lacks(find: Find) -> None:
    finding = find(checks.no_nulls("id", "text"), [{"id": 1, "text": "a"}] * 2)
    assert finding.text == "None of 2 records lack a value in id or text."
