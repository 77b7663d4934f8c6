"""Declarations of checks."""

from collections.abc import Callable

import pytest

from dagster_dataops import checks
from dagster_dataops.errors import ConfigurationError


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (checks.row_count, "given min, max or both"),
        (lambda: checks.row_count(min=2, max=1), "min <= max"),
        (lambda: checks.max_dropped(1.5), r"in \[0, 1\]"),
        (checks.no_nulls, "one or more names of columns"),
        (lambda: checks.unique(["id"]), "one or more names of columns"),  # type: ignore[arg-type]
        (lambda: checks.required_columns("a", severity="BAD"), "WARN or ERROR"),  # type: ignore[arg-type]
        (lambda: checks.no_nulls("a", severity="WARN", blocking=True), "ERROR for a check that"),
        (lambda: checks.no_nulls("a", name="a b"), "letters, digits and underscores"),
    ],
)
def test_impossible_checks_are_refused(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        declare()


def test_names_come_of_columns_and_descriptions_are_sentences() -> None:
    declared = [
        checks.no_nulls("text"),
        checks.unique("a.b", "ç"),
        checks.required_columns("a", "b", "c"),
        checks.row_count(min=1, max=10_000),
        checks.max_dropped(0.125),
    ]
    assert [(check.name, check.description) for check in declared] == [
        ("no_nulls_text", "text is never null or missing."),
        ("unique_a_b__", "No two records have the same a.b and ç."),
        ("required_columns", "Every record has a, b and c."),
        ("row_count", "There are at least 1 and at most 10,000 records."),
        ("max_dropped", "At most 12.5 % of the input records are dropped."),
    ]
