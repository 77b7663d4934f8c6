"""Tests of dagster_dataops.datasets.exporters.endings: exports of results by ``set_output``."""

import sys
from pathlib import Path

import pandas as pd
import pytest

from dagster_dataops import To, config, data, data_register, pipeline
from dagster_dataops.errors import (
    ConfigurationError,
    ExportError,
    MissingExtraError,
    StorageError,
)

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


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("out.parquet", lambda path: pd.read_parquet(path)["text"].tolist()),
        ("out.csv", lambda path: pd.read_csv(path)["text"].tolist()),
        ("out.tsv", lambda path: pd.read_csv(path, sep="\t")["text"].tolist()),
        ("out.jsonl.gz", lambda path: pd.read_json(path, lines=True)["text"].tolist()),
        ("out.jsonl.zst", lambda path: pd.read_json(path, lines=True)["text"].tolist()),
    ],
)
def test_the_ending_chooses_the_format(tmp_path, name, read):
    operator = data.exporting.mark().set_output(tmp_path / name)

    assert read(operator(RECORDS)) == ["a!", "b!"]
    before = (tmp_path / name).stat()
    assert read(operator(RECORDS)) == ["a!", "b!"]
    assert (tmp_path / name).stat() == before
    assert read(operator([*RECORDS, {"text": "c"}])) == ["a!", "b!", "c!"]


def test_an_edited_export_is_written_again_without_another_run(tmp_path):
    calls = tmp_path / "calls"
    source = tmp_path / "source.jsonl"
    source.write_text('{"text":"a"}\n')
    operator = data.exporting.mark(calls=str(calls)).set_output(tmp_path / "out.csv")

    for _ in range(3):
        assert Path(operator(source)).read_bytes() == b"text\r\na!\r\n"
        (tmp_path / "out.csv").write_bytes(b"text\r\nx!\r\n")
    assert calls.read_text() == "called\n"


def test_a_value_that_does_not_fit_fails_the_export_and_keeps_the_result(tmp_path, root):
    @data_register("data.exporting", _concurrency_mode="single")
    def mixed(record: dict) -> dict:
        return {"n": record["n"] or "none"}

    with pytest.raises(ExportError, match=r"mixed_results.jsonl, line 2\), column 'n'"):
        data.exporting.mixed().set_output(tmp_path / "out.parquet")([{"n": 1}, {"n": 0}])
    assert (root / "mixed" / "mixed_results.jsonl").read_text() == '{"n":1}\n{"n":"none"}\n'


def test_a_missing_package_is_named_where_the_output_is_set(monkeypatch, tmp_path):
    for package, name, extra in (
        ("pyarrow", "x.parquet", "arrow"),
        ("zstandard", "x.jsonl.zst", "zstd"),
    ):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtraError, match=rf"\[{extra}\]"):
            data.exporting.mark().set_output(tmp_path / name)


def test_two_results_in_one_file_are_refused_in_every_format():
    with pytest.raises(ConfigurationError, match="a folder, for the results train, test"):
        data.exporting.parted().set_output("x.parquet")


@data_register("data.exporting", outputs=("train", "test"))
def parted(record: dict) -> To:
    return To("train")
