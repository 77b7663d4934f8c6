"""Tests of summaries of error files: failures by exception, counted in full, with examples."""

import json
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.assets.metadata.failure_summary import failure_groups, failure_table, failures
from tests.assets.helpers import write_jsonl


def error(line: int, exception: str, message: str, given: Any, **more: Any) -> dict[str, Any]:
    """Return an error row with the fields that matter here."""
    told = {"path": "in.jsonl", "line": line, "operator": "demo.x", "exception": exception}
    return {"index": line - 1, **told, "message": message, "input": given, **more}


def counts(*paths: Path) -> dict[str, int]:
    return {group.exception: group.records for group in failure_groups(paths)}


def test_failures_are_grouped_by_exception_the_most_frequent_first(tmp_path: Path) -> None:
    rows = [
        error(1, "KeyError", "'text'", {"id": 0}),
        error(2, "ValueError", "bad | value", {"id": 1}),
        error(5, "ValueError", "another", {"id": 4}),
    ]
    assert failures(write_jsonl(tmp_path / "errors.jsonl", rows)).splitlines() == [
        "| exception | records | first |",
        "| --- | --- | --- |",
        "| ValueError | 2 | line 2: bad \\| value |",
        "| KeyError | 1 | line 1: 'text' |",
        "",
        "_all of them: errors.jsonl_",
    ]


def test_every_row_of_a_long_file_is_counted(tmp_path: Path) -> None:
    rows = [error(n, "Odd" if n % 2 else "Even", f"m {n}", {}) for n in range(5001)]
    assert counts(write_jsonl(tmp_path / "errors.jsonl", rows)) == {"Even": 2501, "Odd": 2500}


@pytest.mark.parametrize(
    "path",
    ['a","exception":"Wrong', ',"exception":"Wrong"', '\\","exception":"Wrong', '\\\\",'],
)
def test_nothing_in_a_path_passes_for_an_exception(path: str, tmp_path: Path) -> None:
    row = error(1, "Right", 'it said ,"exception":"Wrong"', {"exception": "Wrong"})
    found = counts(write_jsonl(tmp_path / "errors.jsonl", [{**row, "path": path}]))
    assert found == {"Right": 1}


def test_an_error_file_in_another_json_style_is_read(tmp_path: Path) -> None:
    path = tmp_path / "errors.jsonl"
    path.write_text(json.dumps(error(1, "KeyError", "m", {})) + "\n")  # with spaces
    assert counts(path) == {"KeyError": 1}


def test_examples_differ_in_their_message_and_are_few(tmp_path: Path) -> None:
    rows = [error(n, "ValueError", f"message {n // 10}", {"n": n}) for n in range(200)]
    (group,) = failure_groups([write_jsonl(tmp_path / "errors.jsonl", rows)])
    assert [(e.line, e.message) for e in group.examples] == [
        (0, "message 0"),
        (10, "message 1"),
        (20, "message 2"),
    ]


def test_examples_are_cut_and_on_one_line(tmp_path: Path) -> None:
    row = error(1, "ValueError", "one\ntwo " + "x" * 10_000, {"text": "y" * 10_000})
    (group,) = failure_groups([write_jsonl(tmp_path / "errors.jsonl", [row])])
    assert group.examples[0].message.startswith("one two xxx")
    assert len(group.examples[0].message) == len(group.examples[0].input) == 160


def test_kinds_without_end_are_counted_together(tmp_path: Path) -> None:
    rows = [error(n, f"Error{n}", "m", {}) for n in range(1000)]
    found = counts(write_jsonl(tmp_path / "errors.jsonl", rows))
    assert found["others"] == 950
    assert sum(found.values()) == 1000


def test_several_files_are_counted_together(tmp_path: Path) -> None:
    one = write_jsonl(tmp_path / "one.jsonl", [error(1, "A", "m", {}), error(2, "B", "m", {})])
    other = write_jsonl(tmp_path / "other.jsonl", [error(1, "A", "n", {})])
    assert counts(one, other) == {"A": 2, "B": 1}


def test_the_table_has_a_row_an_example_and_counts_each_exception_once(tmp_path: Path) -> None:
    rows = [error(3, "KeyError", "'a'", {"b": 1}), error(4, "KeyError", "'c'", {})]
    table = failure_table(failure_groups([write_jsonl(tmp_path / "errors.jsonl", rows)]))
    assert [record.data for record in table.records] == [
        {"exception": "KeyError", "records": 2, "line": 3, "message": "'a'", "input": '{"b":1}'},
        {"exception": "KeyError", "records": None, "line": 4, "message": "'c'", "input": "{}"},
    ]
