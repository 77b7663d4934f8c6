"""Tests of the report of a pipeline: its facts from files, its excerpts, the page."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import To, combine, config, data, data_register, pipeline, report
from dagster_dataops.errors import DataOpsError, NewerVersionError, ResultMissingError
from dagster_dataops.pipelines.reporting.changed_records import changed_records
from dagster_dataops.pipelines.reporting.excerpts import excerpt, excerpts, shown_line
from dagster_dataops.pipelines.reporting.failed_rows import RowBudget, failed_rows
from dagster_dataops.pipelines.reporting.published_nodes import published_nodes
from tests.nodes import Root
from tests.object_stores import FakeStore, machine
from tests.pipelines.reporting.conftest import (
    COUNT,
    HOSTILE,
    backwards,
    judge,
    read_report,
    reported,
    shorter,
)


def test_the_report_is_beside_the_nodes_and_has_the_numbers_of_their_manifests(
    made, root, tmp_path, read
):
    path = report(made)
    assert path == root / "reported" / "report.html"
    content = read(path)
    judged, cleaned, turned = content["nodes"]
    assert content["title"] == "reported"
    assert [node["name"] for node in content["nodes"]] == ["judged", "cleaned", "turned"]
    failed = COUNT // 10 + COUNT // 50
    assert (judged["rows_in"], judged["dropped"], judged["failed"]) == (COUNT, 30, failed)
    assert judged["rows_out"] == cleaned["rows_in"] == COUNT - 30 - failed + 30
    assert [part["name"] for part in cleaned["parts"]] == ["shorter", "picky"]
    assert turned["rows_in"] == cleaned["rows_out"]
    assert turned["changes"]["rows"] == []
    assert "takes all records at once" in turned["changes"]["note"]
    of_folder = read(report(root / "reported", tmp_path / "a" / "b.html"))
    assert of_folder["nodes"] == content["nodes"]


def test_of_an_export_the_files_are_counted(source, tmp_path, read):
    with pipeline("exported") as ppl:
        ppl.judged = judge()
        ppl.lines = data.export.Jsonl(path=str(tmp_path / "out.jsonl"))
    ppl.materialize(source)
    judged, lines = read(report(ppl))["nodes"]
    assert (judged["out"], lines["out"]) == (f"{judged['rows_out']:,}", "1 file")


def test_new_records_are_told_from_dropped_ones(source, read):
    with pipeline("summed") as ppl:
        ppl.judged = judge()
        ppl.sum = data.stats.Summary(["text"])
    ppl.materialize(source)
    judged, summed = read(report(ppl))["nodes"]
    assert (summed["out"], summed["dropped"]) == (f"1 record from {judged['rows_out']:,}", None)


def test_columns_that_records_lack_are_named(tmp_path, monkeypatch, read):
    monkeypatch.chdir(tmp_path)
    with pipeline("halves") as ppl:
        ppl.clean = data.text.Normalize()
    ppl.materialize([{"text": "a"}, {"id": 1}, {"id": 2}])
    (node,) = read(report(ppl))["nodes"]
    assert node["lacking"] == ["2 of 3 records lack the column 'text'"]


def test_drops_have_reasons_and_examples(made, read):
    drops = read(report(made))["nodes"][0]["drops"]
    assert [(one["reason"], one["records"]) for one in drops] == [("three", 30)]
    assert [one["line"] for one in drops[0]["examples"]] == [4, 14, 24]
    assert drops[0]["examples"][0]["input"].startswith('{"n": 3')


def test_numbers_before_and_after_are_of_the_same_records(made, read):
    changes = read(report(made))["nodes"][1]["changes"]
    assert changes["equal"] == []  # records were dropped
    (text,) = [row for row in changes["columns"] if row[0] == "text"]
    before, after = (one.lengths["characters"] for one in text[1:])
    assert after.most == after.least == 20
    assert before.most > 300
    assert before.count == changes["looked"]


@pytest.mark.slow
def test_columns_that_a_node_left_as_they_were_are_only_named(source, root, tmp_path, read):
    with pipeline("apart") as ppl:
        ppl.shorter = shorter()
    rows = ({"text": "a  b " * (n % 40), "answer": "x" * (n * n % 977)} for n in range(3000))
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    ppl.materialize(source)
    found = read(report(ppl))
    changes = found["nodes"][0]["changes"]
    assert changes["equal"] == ["answer"]
    assert [row[0] for row in changes["columns"]] == ["text"]
    assert "Equal in all of them: answer." in found["page"].text


@pytest.mark.slow
def test_a_sample_meets_records_of_every_kind(source, read):
    with pipeline("periods") as ppl:
        ppl.judged = judge()
    rows = ({"n": n, "text": "t"} for n in range(5000))
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    ppl.materialize(source)
    changes = read(report(ppl))["nodes"][0]["changes"]
    assert {row["outcome"] for row in changes["rows"]} == {"kept", "split", "dropped"}


def test_changes_are_shown_side_by_side(made, read):
    found = read(report(made))["nodes"][0]["changes"]
    assert {row["outcome"] for row in found["rows"]} == {"kept", "split", "dropped"}
    kept = next(row for row in found["rows"] if row["outcome"] == "kept")
    assert kept["line"] % 10 == 8
    (change,) = kept["changes"]
    assert change.column == "text"
    cut, added = (
        [piece.text for piece in side if piece.mark] for side in (change.before, change.after)
    )
    assert added == [text.upper() for text in cut]
    split = next(row for row in found["rows"] if row["outcome"] == "split")
    assert len(split["after"]) == 2
    dropped = next(row for row in found["rows"] if row["outcome"] == "dropped")
    assert (dropped["reasons"], dropped["after"]) == ({"three": 1}, [])
    assert found["looked"] == COUNT - 36
    assert found["changed"] == 90


def test_failed_records_are_grouped_and_all_are_held(made, root, read):
    judged, cleaned, _ = read(report(made))["nodes"]
    groups = judged["failures"]["groups"]
    assert {(one["exception"], one["records"]) for one in groups} == {
        ("ValueError", 30),
        ("KeyError", 6),
    }
    assert len(judged["failures"]["rows"]) == judged["failures"]["total"] == 36
    assert judged["failures"]["path"] == str(root / "reported/judged/judged_error.jsonl")
    assert judged["failures"]["rows"][0]["message"] == f"four {HOSTILE}"
    assert [one["part"] for one in cleaned["failures"]["groups"]] == ["picky"]


@pytest.mark.slow
def test_no_text_is_markup(made, read):
    shown = read(report(made))
    assert HOSTILE in shown["nodes"][0]["failures"]["rows"][0]["message"]
    assert HOSTILE.split("\x00")[0].strip() in shown["page"].text.replace("\x00", "")


def test_a_result_that_was_edited_is_reported_without_a_comparison(made, root, read):
    path = root / "reported/judged/judged_results.jsonl"
    path.write_bytes(path.read_bytes() + b'{"n": -1, "text": "more"}\n')
    changes = read(report(made))["nodes"][0]["changes"]
    assert "was edited or replaced" in changes["note"]


def test_records_of_a_call_have_no_input_to_compare(root, read):
    with pipeline("called") as ppl:
        ppl.judged = judge()
    ppl([{"n": 1, "text": "a"}, {"n": 7, "text": "b"}])
    changes = read(report(ppl))["nodes"][0]["changes"]
    assert "temporary" in changes["note"]


def test_nodes_that_were_not_run_are_named(root, source, read):
    with pipeline("reported") as first:
        first.judged = judge()
    first.materialize(source)
    rows = read(report(reported()))["page"].rows
    assert [row for row in rows if "not run" in row] == [
        ["cleaned", "not run"],
        ["turned", "not run"],
    ]


def test_without_results_there_is_no_report(root):
    with pipeline("none") as ppl:
        ppl.turned = backwards()
    with pytest.raises(ResultMissingError, match="run the pipeline before its report"):
        report(ppl)
    assert not (root / "none").exists()


def test_a_report_is_made_without_any_write_to_the_nodes(made, root, tmp_path):
    def state() -> list[tuple[str, int]]:
        return sorted(
            (str(Path(where, name)), Path(where, name).stat().st_mtime_ns)
            for where, _, names in os.walk(root)
            for name in names
        )

    before = state()
    report(made, tmp_path / "report.html")
    assert state() == before


def test_odd_values_and_long_lines_are_shown(root, tmp_path, read):
    source = tmp_path / "odd.jsonl"
    long = {"n": 7, "text": "y" * 200_000, "big": 2**63, "nested": {"a": [1, None]}}
    source.write_text(json.dumps(long) + "\n" + '{"n": 27, "text": "\\ud83d\\ude00 ß"}\n')
    with pipeline("odd") as ppl:
        ppl.judged = judge()
    ppl.materialize(source)
    path = report(ppl)
    rows = read(path)["nodes"][0]["changes"]["rows"]
    assert [[change.column for change in row["changes"]] for row in rows] == [["line"], ["text"]]
    assert "".join(piece.text for piece in rows[1]["changes"][0].after) == "\N{GRINNING FACE} SS"
    assert path.stat().st_size < 50_000


def test_the_folder_of_the_report_is_that_of_the_configuration(made, tmp_path, read):
    with config.temporary(data_process_path=tmp_path / "other"), pytest.raises(ResultMissingError):
        report(made)


@data_register("data.reported", _concurrency_mode="single", outputs=["even", "odd"])
def parity(record: dict[str, Any]) -> Any:
    """Send a record to one of two results."""
    return To("odd" if record["n"] % 2 else "even", record)


def test_a_node_is_found_after_those_of_its_inputs(root: Path, source: Path):
    with pipeline("docs") as ppl:
        ppl.zebra = judge()
        ppl.yak = shorter()
        ppl.ape = shorter()
    ppl.materialize(source)
    assert [node.name for node in published_nodes([Root(root / "docs")])] == ["zebra", "yak", "ape"]


def test_a_node_with_several_results_is_one_node(root: Path, source: Path):
    with pipeline("docs") as ppl:
        ppl.parts = parity()
        ppl.add("last", shorter(), inputs=[ppl.parts.odd])
    ppl.materialize(source)
    parts, last = published_nodes([Root(root / "docs")])
    assert [path.parent.name for path in parts.results] == ["even", "odd"]
    assert (parts.name, last.inputs) == ("parts", parts.results[1:])


def test_a_folder_without_nodes_has_none(tmp_path: Path):
    assert published_nodes([Root(tmp_path / "missing" / "folder")]) == []
    (node,) = published_nodes([Root(tmp_path / "node")])
    assert (node.state, node.manifest, node.results, node.inputs) == ("not run", None, [], [])


def test_a_damaged_manifest_is_no_result(root: Path, source: Path):
    with pipeline("docs") as ppl:
        ppl.one = shorter()
    ppl.materialize(source)
    (root / "docs/one/one_results.jsonl.json").write_text("{}")
    (node,) = published_nodes([Root(root / "docs" / "one")])
    assert node.state == "not run"


def test_an_unfinished_node_says_how_far_it_is(root: Path, source: Path):
    with pipeline("docs") as ppl:
        ppl.one = judge(_ignore_errors=False)
    with pytest.raises(DataOpsError, match="four"):
        ppl.materialize(source)
    (node,) = published_nodes([Root(root / "docs" / "one")])
    assert "unfinished" in node.state


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


@data_register("data.reported", _concurrency_mode="single", _stop_after_failures=0)
def seldom(record: dict[str, Any]) -> Any:
    """Fail at most records; change the others."""
    if record["n"] % 3:
        raise ValueError("no third")
    return {**record, "new": True}


def changes_in(place: Path) -> dict[str, Any]:
    (node,) = published_nodes([Root(place)])
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
    for row in found["rows"]:
        (change,) = row["changes"]
        assert (change.column, change.before, change.after[0].text) == ("new", None, "true")


def test_records_of_several_inputs_are_compared_with_their_own(root: Path, tmp_path: Path):
    with pipeline("docs") as ppl:
        ppl.one = shorter()
        ppl.two = seldom()
        ppl.add("both", seldom(), inputs=[ppl.one, ppl.source])
    ppl.materialize(write(tmp_path / "in.jsonl", 30))
    found = changes_in(root / "docs" / "both")
    assert found["changed"] == 20
    assert {change.column for row in found["rows"] for change in row["changes"]} == {"new"}


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


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a", "a"),
        ("", ""),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (2**70, "1180591620717411303424"),
        ("\ud800", "\\ud800"),
        (["\ud800"], "['\\ud800']"),
    ],
)
def test_every_value_has_a_text(value, shown):
    assert excerpt(value).encode().decode() == shown
    assert excerpt("abcdef", 3) == "abc…"


def test_lines_that_are_no_objects_are_shown_as_text():
    assert shown_line(b"[1]") == {"line": "[1]"}
    assert shown_line(b'{"cut": "te') == {"line": '{"cut": "te'}
    texts = excerpts(dict.fromkeys(map(str, range(99))))
    assert list(texts)[-2:] == ["19", "…"]
    assert texts["…"] == "79 more columns"


def test_a_manifest_of_a_newer_version_in_a_bucket_is_named_by_its_url(tmp_path):
    root = machine(tmp_path, store := FakeStore())
    store.put("root/a/a_results.jsonl.json", b'{"made_from": {"format": "99-little"}}')

    (node,) = published_nodes([root])
    assert node.manifest is None
    url = "memory://bucket/root/a/a_results.jsonl.json"
    assert str(node.error).startswith(f"{url} has format 99-little, of a")


def test_a_node_of_a_newer_version_is_shown_with_its_error_beside_the_others(made, root, read):
    manifest = root / "reported/judged/judged_results.jsonl.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"6-little"', b'"7-little"'))
    judged, cleaned, _ = read(report(made))["nodes"]
    assert judged["state"].startswith(f"{manifest} has format 7-little, of a newer version")
    assert cleaned["rows_out"] > 0
    for one in root.glob("reported/*/*_results.jsonl.json"):
        one.write_bytes(one.read_bytes().replace(b'"6-little"', b'"7-little"'))
    with pytest.raises(NewerVersionError, match="has format 7-little"):
        report(made)


def test_a_node_whose_manifest_is_refused_is_shown_beside_the_others(made, root, read, monkeypatch):
    manifest = root / "reported/judged/judged_results.jsonl.json"
    read_bytes = Path.read_bytes

    def refusing(path):
        if path == manifest:
            raise PermissionError(errno.EACCES, "Permission denied")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", refusing)
    judged, cleaned, _ = read(report(made))["nodes"]
    assert "Permission denied" in judged["state"]
    assert str(manifest) in judged["state"]
    assert cleaned["rows_out"] > 0
