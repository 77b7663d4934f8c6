"""Tests of the report of a pipeline, by its HTML."""

import json
import os
from pathlib import Path

import pytest

from dagster_dataops import config, data, pipeline, report
from dagster_dataops.errors import ResultMissingError
from tests.pipelines.reporting.conftest import COUNT, HOSTILE, backwards, judge, reported


def test_the_report_is_beside_the_nodes_and_shows_each_in_order(made, root, read):
    path = report(made)
    assert path == root / "reported" / "report.html"
    content = read(path)
    assert content["title"] == "reported"
    assert [node["name"] for node in content["nodes"]] == ["judged", "cleaned", "turned"]


def test_the_numbers_are_those_of_the_manifests(made, read):
    judged, cleaned, turned = read(report(made))["nodes"]
    failed = COUNT // 10 + COUNT // 50
    assert (judged["rows_in"], judged["dropped"], judged["failed"]) == (COUNT, 30, failed)
    assert judged["rows_out"] == cleaned["rows_in"] == COUNT - 30 - failed + 30
    assert [part["name"] for part in cleaned["parts"]] == ["shorter", "picky"]
    assert turned["rows_in"] == cleaned["rows_out"]


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


def test_a_folder_gives_the_same_report_as_its_pipeline(made, root, tmp_path, read):
    first, second = read(report(made)), read(report(root / "reported", tmp_path / "a" / "b.html"))
    assert first["nodes"] == second["nodes"]


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


def test_lengths_are_compared_by_column(made, read):
    (text,) = read(report(made))["nodes"][1]["lengths"]
    assert text["column"] == "text"
    assert text["after"]["most"] == text["after"]["median"] == 20
    assert text["before"]["most"] > 300
    assert sum(text["before"]["histogram"]) == text["before"]["texts"]


def test_changes_are_shown_side_by_side(made, read):
    found = read(report(made))["nodes"][0]["changes"]
    assert {row["outcome"] for row in found["rows"]} == {"kept", "split", "dropped"}
    kept = next(row for row in found["rows"] if row["outcome"] == "kept")
    assert kept["line"] % 10 == 8
    assert list(kept["before"][0]) == list(kept["after"][0]) == ["text"]
    assert kept["after"][0]["text"] == kept["before"][0]["text"].upper()
    split = next(row for row in found["rows"] if row["outcome"] == "split")
    assert len(split["after"]) == 2
    dropped = next(row for row in found["rows"] if row["outcome"] == "dropped")
    assert (dropped["reasons"], dropped["after"]) == ({"three": 1}, [])
    assert found["looked"] == COUNT - 36
    assert found["changed"] == 90


def test_a_node_without_a_map_says_why_nothing_is_compared(made, read):
    changes = read(report(made))["nodes"][2]["changes"]
    assert changes["rows"] == []
    assert "takes all records at once" in changes["note"]


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


def test_no_text_can_end_the_data(made, read):
    path = report(made)
    assert path.read_text().count("</script>") == 2
    assert HOSTILE in read(path)["nodes"][0]["failures"]["rows"][0]["message"]


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
    nodes = read(report(reported()))["nodes"]
    assert [(node["name"], node["state"]) for node in nodes][1:] == [
        ("cleaned", "not run"),
        ("turned", "not run"),
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
    assert [list(row["before"][0]) for row in rows] == [["line"], ["text"]]
    assert rows[1]["after"][0]["text"] == "\N{GRINNING FACE} SS"
    assert path.stat().st_size < 50_000


def test_the_folder_of_the_report_is_that_of_the_configuration(made, tmp_path, read):
    with config.temporary(data_process_path=tmp_path / "other"), pytest.raises(ResultMissingError):
        report(made)
