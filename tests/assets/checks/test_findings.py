"""What a check found."""

from dagster_dataops import checks
from tests.assets.checks.finding import Find


def test_only_the_first_offending_records_are_reported(find: Find) -> None:
    finding = find(checks.no_nulls("no"), [{"text": "x" * 1000}] * 500)
    assert finding.violations.count == 500
    rows = finding.rows()
    assert [row["line"] for row in rows] == list(range(1, 11))
    assert all(len(str(row["value"])) == 100 for row in rows)
