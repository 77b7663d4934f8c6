"""Tests of the failed records of a report."""

from pathlib import Path
from typing import Any

import orjson

from dagster_dataops.pipelines.reporting.failed_rows import RowBudget, failed_rows


def write_errors(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_bytes(
        b"".join(
            orjson.dumps({"index": at, "path": "in", "line": at + 1, "input": {"n": at}, **row})
            + b"\n"
            for at, row in enumerate(rows)
        )
    )
    return path


def test_every_group_keeps_its_first_rows_when_there_is_no_room_left(tmp_path: Path):
    many = [{"exception": "Many", "message": "m"}] * 50
    few = [{"exception": "Few", "part": "clean", "message": "f"}] * 5
    budget = RowBudget(rows=10)
    found = failed_rows(write_errors(tmp_path / "e.jsonl", many + few), budget)
    assert [(one["exception"], one["part"], one["records"]) for one in found["groups"]] == [
        ("Many", "", 50),
        ("Few", "clean", 5),
    ]
    assert found["total"] == 55
    shown = [row["line"] for row in found["rows"]]
    assert shown == [*range(1, 11), 51, 52, 53]
    assert budget.rows == 0


def test_the_room_is_shared_and_counted_in_characters(tmp_path: Path):
    rows = [{"exception": "E", "message": "m" * 100}] * 20
    path, budget = write_errors(tmp_path / "e.jsonl", rows), RowBudget(characters=1100)
    assert len(failed_rows(path, budget)["rows"]) == 10
    assert len(failed_rows(path, budget)["rows"]) == 3


def test_many_exceptions_are_grouped_as_others(tmp_path: Path):
    rows = [{"exception": f"E{number}", "message": ""} for number in range(200)]
    groups = failed_rows(write_errors(tmp_path / "e.jsonl", rows), RowBudget())["groups"]
    assert len(groups) == 51
    assert (groups[-1]["exception"], groups[-1]["records"]) == ("others", 150)


def test_failed_items_of_streams_are_grouped_by_stage(tmp_path: Path):
    rows = [{"stage": "map", "exception": "E", "message": "m"}]
    (group,) = failed_rows(write_errors(tmp_path / "e.jsonl", rows), RowBudget())["groups"]
    assert group["part"] == "map"


def test_long_inputs_are_cut(tmp_path: Path):
    rows = [{"exception": "E", "message": "m" * 10**6, "input": "i" * 10**6}]
    (row,) = failed_rows(write_errors(tmp_path / "e.jsonl", rows), RowBudget())["rows"]
    assert (len(row["message"]), len(row["input"])) == (601, 1001)
