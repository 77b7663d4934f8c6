"""Checks of required columns."""

from dagster_dataops import checks
from tests.assets.checks.finding import Find


def test_required_columns_may_be_null(find: Find) -> None:
    rows = [{"id": 1, "text": None}, {"id": 2}, {"text": ""}]
    finding = find(checks.required_columns("id", "text"), rows)
    assert finding.text == "2 of 3 records lack id or text."
    assert finding.rows() == [
        {"line": 2, "problem": "lacks text", "value": '{"id":2}'},
        {"line": 3, "problem": "lacks id", "value": '{"text":""}'},
    ]
