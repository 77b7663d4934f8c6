"""Tests of exports of results: rebuilt if missing or stale, otherwise unchanged."""

from pathlib import Path

import pytest

from dagster_dataops import config, data, data_register, pipeline
from dagster_dataops.errors import StorageError

RECORDS = [{"text": "a"}, {"text": "b"}]
MARKED = '{"text":"a!"}\n{"text":"b!"}\n'


@data_register("data.exporting", _concurrency_mode="single")
def mark(record: dict, calls: str = "") -> dict:
    if calls:
        with Path(calls).open("a") as file:
            file.write("called\n")
    return {"text": record["text"] + "!"}


@pytest.fixture(autouse=True)
def root(tmp_path):
    with config.temporary(data_process_path=tmp_path / "results", data_process_resume=True):
        yield tmp_path / "results"


def test_a_result_that_is_used_again_is_exported_where_the_export_is_missing_or_stale(tmp_path):
    calls, target = tmp_path / "calls", tmp_path / "out.jsonl"
    source = tmp_path / "source.jsonl"
    source.write_text('{"text":"a"}\n{"text":"b"}\n')
    operator = data.exporting.mark(calls=str(calls)).set_output(target)

    for found in (None, "", MARKED.replace("b", "c"), MARKED[:-3]):
        target.unlink(missing_ok=True)
        if found is not None:
            target.write_text(found)
        assert operator(source) == str(target)
        assert target.read_text() == MARKED
    assert calls.read_text() == "called\n" * 2


def test_an_export_that_holds_the_result_already_is_not_replaced(tmp_path):
    operator = data.exporting.mark().set_output(tmp_path / "out")
    path = Path(operator(RECORDS))
    before = path.stat()

    assert operator(RECORDS) == str(path)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_failed_export_names_its_path_and_keeps_the_result(tmp_path, root):
    (tmp_path / "taken").write_text("a file")
    operator = data.exporting.mark().set_output(tmp_path / "taken" / "out.jsonl")

    with pytest.raises(StorageError, match=r"taken"):
        operator(RECORDS)
    assert (root / "mark" / "mark_results.jsonl").read_text() == MARKED


def test_a_report_names_the_exported_file_of_each_node(tmp_path):
    with pipeline("exporting") as ppl:
        ppl.first = data.exporting.mark().set_output(tmp_path / "out")
        ppl.second = data.exporting.mark()

    reports = ppl.materialize(RECORDS)

    assert reports["first"].exported == tmp_path / "out" / "first.jsonl"
    assert reports["second"].exported is None
