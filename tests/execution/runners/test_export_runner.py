"""Tests of dagster_dataops.execution.runners.export_runner."""

import errno
import json
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dagster_dataops import JsonlDataset, To, chain, config, data, data_register, pipeline
from dagster_dataops.errors import (
    ChainDefinitionError,
    ConfigurationError,
    DatasetOperatorError,
    FolderLockedError,
    OperatorDefinitionError,
    OperatorOptionError,
    OutageError,
    PipelineDefinitionError,
    RecordError,
    RetryRefusedError,
    RunStoppedError,
    StorageError,
)
from tests.datasets.exporters.folders import names_in
from tests.execution.helpers import error_rows, node, run, write_input
from tests.faults.failing import failing
from tests.nodes import (
    ExecutionSettings,
    NodeFolder,
    OperatorExecutor,
    ResumePolicy,
    RunContext,
    exporting,
    reconfigured,
)

group = data_register.new_group("export_runner_tests")
RECORDS = [{"n": n} for n in range(10)]


class Total(group):
    """Write the sum of the numbers; read the records twice."""

    format = "total"

    def __init__(self, path, then=None, **kwargs):
        super().__init__(**kwargs)
        self.then = then

    def write(self, records, place):
        assert [record["n"] for record in records] == [record["n"] for record in records]
        assert b"".join(records.lines()).count(b"\n") == len(list(records))
        place.write_text(str(sum(record["n"] for record in records)))
        if self.then:
            self.then()


class Both(group):
    place = "folder"

    def __init__(self, folder, **kwargs):
        super().__init__(**kwargs)

    def write(self, records, place):
        (place / "first").write_text(json.dumps(next(iter(records))))
        (place / "all").write_text(json.dumps(list(records)))


@pytest.fixture
def dataset(tmp_path: Path):
    return write_input(tmp_path / "input.jsonl", RECORDS)


def test_the_result_lists_the_files_and_the_report_has_the_export(tmp_path, dataset):
    report = run(Total(tmp_path / "out" / "total"), dataset, node(tmp_path))

    assert (tmp_path / "out" / "total").read_text() == "45"
    assert report.exported == tmp_path / "out" / "total"
    assert report.export is not None
    assert (report.export.format, report.export.rows, report.export.size_bytes) == ("total", 10, 2)
    assert report.dataset.read() == report.export.files
    assert [row["path"] for row in report.dataset.read()] == ["total"]
    assert (report.manifest.rows_in, report.manifest.rows_out) == (10, 1)
    assert (report.manifest.dropped, report.kind) == (0, "export")


def test_a_relative_path_is_below_the_root(tmp_path, dataset):
    context = RunContext(run="r", root=tmp_path / "root")
    for path in ("deep/total", tmp_path / "root" / "deep" / "total"):
        OperatorExecutor(context).run(Total(path), [dataset], node(tmp_path))
    assert (tmp_path / "root" / "deep" / "total").read_text() == "45"
    run(Total("total"), dataset, node(tmp_path))
    assert (node(tmp_path).path / "total").read_text() == "45"


def test_a_current_export_is_not_written_again_by_any_run(tmp_path, dataset):
    calls: list[int] = []

    class Counted(Total):
        def write(self, records, place):
            calls.append(1)
            super().write(records, place)

    target = tmp_path / "total"
    for _ in range(2):
        report = run(Counted(target), dataset, node(tmp_path))
        assert (report.manifest.rows_in, report.export.rows) == (10, 10)
    assert len(calls) == 1
    target.write_text("54")
    run(Counted(target), dataset, node(tmp_path))
    assert (len(calls), target.read_text()) == (2, "45")
    target.unlink()
    run(Counted(target), dataset, node(tmp_path))
    assert (len(calls), target.read_text()) == (3, "45")
    other = write_input(tmp_path / "other.jsonl", RECORDS[:5])
    run(Counted(target), other, node(tmp_path))
    assert (len(calls), target.read_text()) == (4, "10")


def test_a_finished_export_is_reused_only_if_its_files_are_unchanged(tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text('{"n":1}\n{"n":2}\n')
    target = tmp_path / "total"
    with config.temporary(data_process_resume=True), pipeline("finished") as ppl:
        ppl.total = Total(target)
    with config.temporary(data_process_resume=True):
        assert not ppl.materialize(source)["total"].reused
        again = ppl.materialize(source)["total"]
        assert again.reused
        assert again.exported == target
        assert again.notes[0].startswith("already finished by run")
        assert "1 file," in again.notes[0]
        target.write_text("4")
        assert not ppl.materialize(source)["total"].reused
        assert target.read_text() == "3"
        assert ppl(source) == str(target)


def test_lines_that_are_no_records_go_to_the_error_file_once(tmp_path):
    dataset = write_input(tmp_path / "in.jsonl", RECORDS[:2])
    with dataset.path.open("ab") as file:
        file.write(b'nonsense\n{"n":5}\n')
    dataset = type(dataset).of_file(dataset.path)

    for _ in range(2):
        report = run(Total(tmp_path / "total"), dataset, node(tmp_path))
        assert (tmp_path / "total").read_text() == "6"
        assert (report.manifest.rows_in, report.manifest.failed) == (4, 1)
        assert [row["line"] for row in error_rows(node(tmp_path))] == [3]
        assert report.export.rows == 3
    with pytest.raises(RecordError, match="line 3"):
        run(Total(tmp_path / "t", _ignore_errors=False), dataset, node(tmp_path))
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("nonsense", ["", "nonsense\n", '{"n":NaN}\n'])
def test_a_table_of_a_plain_file_has_its_records_and_reports_the_other_lines(tmp_path, nonsense):
    path = tmp_path / "in.jsonl"
    path.write_text('{"n": 1}\n{"n": 2}\n' + nonsense + '{"n": 3}\n')
    dataset = JsonlDataset.of_file(path)

    report = run(data.export.Parquet(tmp_path / "t.parquet"), dataset, node(tmp_path))

    assert pq.read_table(report.exported)["n"].to_pylist() == [1, 2, 3]
    failed = [3] if nonsense else []
    assert (report.manifest.rows_in, report.export.rows) == (3 + len(failed), 3)
    assert [row["line"] for row in error_rows(node(tmp_path))] == failed


def test_an_input_without_records_or_with_nonsense_alone(tmp_path):
    empty = write_input(tmp_path / "empty.jsonl", [])
    assert run(Total(tmp_path / "total"), empty, node(tmp_path)).export.rows == 0
    (tmp_path / "in.jsonl").write_text('{"n"\n{"n\n')
    nonsense = type(empty)(tmp_path / "in.jsonl", 9)
    with pytest.raises(OutageError):
        run(Total(tmp_path / "total"), nonsense, node(tmp_path))
    assert (tmp_path / "total").read_text() == "0"


def test_a_failing_or_stopped_export_keeps_the_earlier_one(tmp_path, dataset):
    target = tmp_path / "out" / "total"
    run(Total(target), dataset, node(tmp_path))

    def failing():
        raise ValueError("no more")

    other = write_input(tmp_path / "other.jsonl", RECORDS * 100)
    with pytest.raises(DatasetOperatorError, match="ValueError: no more"):
        run(Total(target, then=failing), other, node(tmp_path))
    with pytest.raises(RunStoppedError):
        run(Total(target), other, node(tmp_path), should_stop=lambda: "enough")
    assert target.read_text() == "45"
    assert names_in(target.parent) == ["total"]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("fsync", "total"),
        ("fsync", "out"),
        ("mkdir", ""),
        ("rename", "total"),
        ("replace", "total"),
    ],
)
def test_a_disk_that_refuses_is_named_and_leaves_the_export_before(tmp_path, dataset, call, name):
    target = tmp_path / "out" / "total"
    run(Total(target), dataset, node(tmp_path))
    other = write_input(tmp_path / "other.jsonl", RECORDS * 2)
    with failing(call, name, errno.EIO), suppress(StorageError):
        run(Total(target), other, node(tmp_path))
    assert target.read_text() in {"45", "90"}
    assert names_in(target.parent) == ["total"]
    run(Total(target), other, node(tmp_path))
    assert target.read_text() == "90"


def test_a_full_disk_is_named(tmp_path, dataset):
    def full():
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StorageError, match=r"total: cannot export .* No space left"):
        run(Total(tmp_path / "total", then=full), dataset, node(tmp_path))
    assert not (tmp_path / "total").exists()


def test_failed_records_of_an_export_cannot_be_retried_alone(tmp_path, dataset):
    with dataset.path.open("ab") as file:
        file.write(b"nonsense\n")
    damaged = type(dataset).of_file(dataset.path)
    run(Total(tmp_path / "total"), damaged, node(tmp_path))
    with pytest.raises(RetryRefusedError, match="written from all records at once"):
        run(
            Total(tmp_path / "total"),
            damaged,
            node(tmp_path),
            run="again",
            resume=ResumePolicy.FAILED_RECORDS,
        )


def test_one_result_of_several_is_exported(tmp_path):
    @data_register("data.export_runner_tests", outputs=("even", "odd"))
    def parity(record: dict):
        return To("odd" if record["n"] % 2 else "even")

    with pipeline("parts") as ppl:
        ppl.split = data.export_runner_tests.parity()
        ppl.add("total", Total(tmp_path / "total"), inputs=[ppl.split.odd])
    assert ppl(RECORDS) == str(tmp_path / "total")
    assert (tmp_path / "total").read_text() == "25"


def test_an_input_that_changes_meanwhile_keeps_the_earlier_export(tmp_path, dataset):
    target = tmp_path / "total"
    run(Total(target), dataset, node(tmp_path))
    other = write_input(tmp_path / "other.jsonl", RECORDS * 2)

    def change():
        other.path.write_text('{"n":1}\n')

    with pytest.raises(Exception, match="changed while it was being processed|other content"):
        run(Total(target, then=change), other, node(tmp_path))
    assert target.read_text() == "45"


def test_a_folder_is_an_export_too(tmp_path, dataset):
    report = run(Both(tmp_path / "both"), dataset, node(tmp_path))

    assert [row["path"] for row in report.dataset.read()] == ["all", "first"]
    assert json.loads((tmp_path / "both" / "all").read_text()) == RECORDS


def test_nodes_after_an_export_take_the_records_before_it(tmp_path):
    with pipeline("exported") as ppl:
        ppl.first = lambda records: [{"n": record["n"] + 1} for record in records]
        ppl.total = Total("total.txt")
        ppl.copy = data.export.Jsonl("copy.jsonl")
        ppl.last = lambda records: [{"n": record["n"] * 2} for record in records]

    assert ppl(RECORDS) == [{"n": 2 * (n + 1)} for n in range(10)]
    assert (config.data_process_path / "total.txt").read_text() == "55"
    assert ppl.graph.nodes["last"].inputs == ("first",)
    assert "done, 1 file" in repr(ppl)


def test_an_export_is_no_input_and_no_part_of_a_chain():
    with (
        pytest.raises(PipelineDefinitionError, match="is an export: files.*take it from 'first'"),
        pipeline("wrong") as ppl,
    ):
        ppl.first = lambda records: records
        ppl.total = Total("total")
        ppl.add("last", lambda records: records, inputs=[ppl.total])
    with pytest.raises(ChainDefinitionError, match="a part of a chain has no result"):
        chain(data.text.Normalize(), Total("total"), name="wrong")


def test_process_workers_start_after_an_export(tmp_path):
    @data_register("data.export_runner_tests", _concurrency_mode="process", _max_workers=2)
    def more(record: dict) -> dict:
        return {"n": record["n"] + 1}

    with pipeline("forked") as ppl:
        ppl.one = data.export_runner_tests.more()
        ppl.table = data.export.Parquet("table.parquet")
        ppl.two = data.export_runner_tests.more()
    assert ppl(RECORDS) == [{"n": n + 2} for n in range(10)]


def test_a_preview_writes_nothing_to_the_target(tmp_path, dataset):
    operator = exporting(Total(tmp_path / "total"), None)
    report = run(operator, dataset, node(tmp_path))

    assert report.exported is None
    assert [row["size_bytes"] for row in report.dataset.read()] == [2]
    assert not (tmp_path / "total").exists()
    assert not list(tmp_path.rglob(".dataops-export*"))


def test_another_path_among_the_options_is_another_target(tmp_path):
    operator = Total(tmp_path / "one")
    changed = reconfigured(operator, {"path": "two"}, ExecutionSettings())

    assert changed.__dataops__.output == Path("two")
    assert reconfigured(operator, {}, ExecutionSettings()).__dataops__.output == tmp_path / "one"


def test_wrong_uses_are_refused(tmp_path):
    with pytest.raises(OperatorOptionError, match="'path' is the path of the export"):
        Total("x").set_output("y")
    with pytest.raises(OperatorOptionError, match="_save_data.*lists its files"):
        Total("x", _save_data=False)
    for wrong in (3, "", None):
        with pytest.raises(OperatorOptionError, match="must be the path of the export"):
            Total(wrong)
    with pytest.raises(ConfigurationError):
        Total("s3://bucket/x")


def write(self, records, place):
    pass


def write_nowhere(self, records):
    pass


def write_parts(self, records, place):
    yield place


def init(self, path, **kwargs):
    pass


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"__init__": init, "write": write_nowhere}, "write must take"),
        ({"write": write}, "first option is the path"),
        ({"__init__": init, "write": write, "place": "disk"}, "its `place` is 'disk'"),
        ({"__init__": init, "write": write_parts}, "cannot `yield`"),
    ],
)
def test_wrong_definitions_are_refused(members, message):
    with pytest.raises(OperatorDefinitionError, match=message):
        type(group)("Wrong", (group,), {"__qualname__": "Wrong", "__module__": __name__, **members})


def test_a_locked_folder_exports_nothing(tmp_path, dataset):
    folder = node(tmp_path)

    def other() -> None:
        with pytest.raises(FolderLockedError):
            context = RunContext(run="other", lock_seconds=0.1)
            OperatorExecutor(context).run(Total(tmp_path / "b"), [dataset], folder)

    run(Total(tmp_path / "a", then=other), dataset, folder)
    assert not (tmp_path / "b").exists()
    assert NodeFolder.at(folder.path).receipt.exists()
