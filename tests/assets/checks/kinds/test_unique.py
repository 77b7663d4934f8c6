"""Checks of repeated values."""

import itertools
from pathlib import Path

import pytest

from dagster_dataops import checks
from tests.assets.checks.finding import Find
from tests.assets.helpers import numbered


def test_repeated_values_are_found_and_null_does_not_count(find: Find) -> None:
    values = [1, "1", None, 1.5, None, "1", True, [1], [1]]
    finding = find(checks.unique("id"), [{"id": value} for value in values] + [{}, {}])
    assert [(row["line"], row["value"]) for row in finding.rows()] == [(6, "1"), (9, "[1]")]
    assert finding.text == "2 of 11 records repeat an earlier one."


def test_a_column_that_no_record_has_fails(find: Find) -> None:
    rows = [{"id": 1}, {"id": 2}]
    finding = find(checks.unique("id", "idd"), rows)
    assert not finding.passed
    assert finding.text == "2 of 2 records lack idd. No record has a value to compare."
    assert find(checks.unique("idd"), []).passed
    assert find(checks.unique("idd"), [{"idd": None}]).passed


def test_several_columns_are_unique_together(find: Find) -> None:
    pairs = list(itertools.product("ab", "xy"))
    rows = [{"one": one, "other": other} for one, other in [*pairs, ("b", "x")]]
    finding = find(checks.unique("one", "other"), rows)
    assert [(row["line"], row["value"]) for row in finding.rows()] == [
        (5, '{"one":"b","other":"x"}')
    ]
    assert find(checks.unique("one", "other"), rows[:4]).passed


def test_repeats_are_found_beyond_the_memory_limit(
    find: Find, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dagster_dataops.assets.checks.kinds.unique._IN_MEMORY", 1000)
    monkeypatch.setattr("dagster_dataops.assets.checks.kinds.unique._SORT_BYTES", 10_000)
    rows = [{"id": number % 4_900} for number in range(5_000)]
    finding = find(checks.unique("id"), rows)
    assert finding.violations.count == 100
    assert [row["line"] for row in finding.rows()] == list(range(4_901, 4_911))


def test_an_inspector_that_found_nothing_leaves_no_file_behind(
    find: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("dagster_dataops.assets.checks.kinds.unique._SORT_BYTES", 1000)
    assert find(checks.unique("id"), list(numbered(1000))).passed
    assert list((tmp_path / "scratch").iterdir()) == []
