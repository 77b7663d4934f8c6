"""Inspectors of files."""

from pathlib import Path

from dagster_dataops import JsonlDataset, checks
from dagster_dataops.assets.checks.inspectors import inspect
from tests.assets.checks.finding import Find


def test_lines_count_as_an_editor_counts_them_and_bad_ones_offend(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1}\n\nno json\n[1]\n{"id": null}\n{"id": 1}')
    declared = [checks.no_nulls("id"), checks.unique("id"), checks.row_count(max=4)]
    inspectors = [check.inspector() for check in declared]
    inspected = inspect(JsonlDataset.of_file(path), None, inspectors)
    nulls, repeats, rows = (inspector(inspected) for inspector in inspectors)
    assert [row["line"] for row in nulls.rows()] == [3, 4, 5]
    assert [row["line"] for row in repeats.rows()] == [6]
    assert (rows.passed, rows.numbers) == (False, {"rows": 5})


def test_every_file_has_a_new_inspector(find: Find) -> None:
    check = checks.unique("id")
    assert check.inspector() is not check.inspector()
    assert find(check, [{"id": 1}]).passed
    assert find(check, [{"id": 1}]).passed
