"""Tests of the records that a report shows side by side."""

import json
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import combine, data, data_register, pipeline, report
from dagster_dataops.pipelines.reporting.changed_records import changed_records
from dagster_dataops.pipelines.reporting.published_nodes import published_nodes
from tests.pipelines.reporting.conftest import read_report, shorter


@data_register("data.reported", _concurrency_mode="single", _stop_after_failures=0)
def seldom(record: dict[str, Any]) -> Any:
    """Fail at most records; change the others."""
    if record["n"] % 3:
        raise ValueError("no third")
    return {**record, "new": True}


def changes_in(place: Path) -> dict[str, Any]:
    (node,) = published_nodes([place])
    assert node.manifest is not None
    return changed_records(node, node.manifest)


def write(path: Path, count: int) -> Path:
    path.write_text("".join(f"{json.dumps({'n': n, 'text': 't' * n})}\n" for n in range(count)))
    return path


def test_lines_are_those_of_the_input_also_after_failures(root: Path, tmp_path: Path):
    with pipeline("docs") as ppl:
        ppl.one = seldom()
    ppl.materialize(write(tmp_path / "in.jsonl", 100))
    found = changes_in(root / "docs" / "one")
    assert (found["looked"], found["changed"]) == (34, 34)
    assert all(row["line"] % 3 == 1 for row in found["rows"])
    assert all(row["after"] == [{"new": "true"}] for row in found["rows"])


def test_records_of_several_inputs_are_compared_with_their_own(root: Path, tmp_path: Path):
    with pipeline("docs") as ppl:
        ppl.one = shorter()
        ppl.two = seldom()
        ppl.add("both", seldom(), inputs=[ppl.one, ppl.source])
    ppl.materialize(write(tmp_path / "in.jsonl", 30))
    found = changes_in(root / "docs" / "both")
    assert found["changed"] == 20
    assert {tuple(row["after"][0]) for row in found["rows"]} == {("new",)}


def test_a_selection_shows_what_it_dropped(root: Path, tmp_path: Path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "a"}\n{"text": "a"}\n\n{"text": "b"}\n{"text": "a"}\n')
    with pipeline("docs") as ppl:
        ppl.one = data.dedup.Exact(input_key="text")
    ppl.materialize(path)
    found = changes_in(root / "docs" / "one")
    assert [(row["line"], row["outcome"]) for row in found["rows"]] == [
        (2, "dropped"),
        (5, "dropped"),
    ]


def test_a_stream_is_not_compared(root: Path, tmp_path: Path):
    with pipeline("docs") as ppl:
        ppl.one = shorter()
        ppl.two = combine.concat([ppl.one, ppl.source])
    ppl.materialize(write(tmp_path / "in.jsonl", 3))
    assert "stream" in changes_in(root / "docs" / "two")["note"]


@pytest.mark.parametrize("change", ["edit", "delete"])
def test_an_input_that_is_no_longer_the_same_is_not_compared(
    root: Path, tmp_path: Path, change: str
):
    source = write(tmp_path / "in.jsonl", 30)
    with pipeline("docs") as ppl:
        ppl.one = shorter()
    ppl.materialize(source)
    write(source, 20) if change == "edit" else source.unlink()
    found = changes_in(root / "docs" / "one")
    assert found["rows"] == []
    assert ("changed since" if change == "edit" else "gone") in found["note"]


def test_without_a_map_the_report_says_that_it_was_switched_off(root: Path, tmp_path: Path):
    with pipeline("docs") as ppl:
        ppl.one = data.filters.TextLength(min_chars=5, _trace=False)
    ppl.materialize(write(tmp_path / "in.jsonl", 30))
    (node,) = read_report(report(ppl))["nodes"]
    assert "switched off" in node["changes"]["note"]
    assert node["drops"][0]["records"] == 5
