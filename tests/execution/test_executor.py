import os
from datetime import datetime
from pathlib import Path

import pytest

from dagster_dataops import StopRun
from dagster_dataops.data import data_register
from dagster_dataops.errors import InputError, RecordError, RunStoppedError
from tests.execution.helpers import (
    MODES,
    TINY,
    Listener,
    act,
    cut_by,
    error_rows,
    expected_results,
    node,
    operator_for,
    plan,
    run,
    turn_around,
    write_input,
)
from tests.nodes import ResumePolicy

_RECORDS = plan(["keep", "fail", "drop", "expand"] * 5)
_CALLS: list[object] = []


@data_register("data.executor_tests", _concurrency_mode="single")
def counted(record):
    _CALLS.append(record)
    return record


@pytest.fixture(autouse=True)
def calls() -> list[object]:
    _CALLS.clear()
    return _CALLS


@pytest.fixture
def dataset(tmp_path: Path):
    return write_input(tmp_path / "input.jsonl", _RECORDS)


@pytest.mark.parametrize("mode", MODES)
def test_a_report_describes_the_result_of_the_run(tmp_path: Path, dataset, mode: str) -> None:
    report = run(operator_for(mode, 2), dataset, node(tmp_path), run="mine")
    assert (report.node, report.reused, report.notes) == ("node", False, ())
    assert report.dataset.path == node(tmp_path).result
    assert report.error_path == node(tmp_path).errors
    assert (report.manifest.run, report.manifest.attempts) == ("mine", ["mine"])
    assert report.records_per_second > 0


def test_without_failures_there_is_no_error_file(tmp_path: Path) -> None:
    report = run(act(), write_input(tmp_path / "x", plan(["keep"])), node(tmp_path))
    assert report.error_path is None


@pytest.mark.parametrize("operator", [counted, turn_around])
@pytest.mark.parametrize(
    "context",
    [{"earlier_runs": frozenset({"first"})}, {"reuse_finished": True}, {"run": "first"}],
    ids=["earlier", "asked", "same"],
)
def test_a_finished_result_is_taken_as_it_is(
    tmp_path: Path, dataset, calls, operator, context: dict
) -> None:
    run(operator(), dataset, node(tmp_path), run="first")
    calls.clear()
    before = node(tmp_path).result.stat()
    report = run(operator(), dataset, node(tmp_path), **{"run": "second", **context})
    assert report.reused
    assert not calls
    assert node(tmp_path).result.stat() == before
    assert "already finished by run first" in report.notes[0]
    assert report.records_per_second == 0


@pytest.mark.parametrize("reuse_finished", [True, False])
def test_a_retry_of_failed_records_runs_although_the_result_is_finished(
    tmp_path: Path, dataset, reuse_finished: bool
) -> None:
    run(act(_concurrency_mode="single"), dataset, node(tmp_path), run="first")
    report = run(
        act(_concurrency_mode="single"),
        dataset,
        node(tmp_path),
        run="second",
        resume=ResumePolicy.FAILED_RECORDS,
        reuse_finished=reuse_finished,
    )
    assert not report.reused
    assert report.manifest.run == "second"
    assert report.manifest.failed == 5


@pytest.mark.parametrize("change", ["options", "input", "result", "manifest"])
def test_a_result_of_another_operator_is_made_again(tmp_path: Path, dataset, change: str) -> None:
    tag = "x" if change == "options" else ""
    run(act(_concurrency_mode="single"), dataset, node(tmp_path))
    if change == "input":
        dataset = write_input(dataset.path, _RECORDS[:7])
    elif change == "result":
        node(tmp_path).result.write_bytes(b"edited")
    elif change == "manifest":
        node(tmp_path).manifest.unlink()
    operator = act(tag=tag, _concurrency_mode="single")
    report = run(operator, dataset, node(tmp_path), run="second", reuse_finished=True)
    assert not report.reused
    assert report.manifest.run == "second"


def test_another_run_makes_the_result_again_by_default(tmp_path: Path, dataset, calls) -> None:
    for name in ("first", "second"):
        run(counted(), dataset, node(tmp_path), run=name)
    assert len(calls) == 2 * len(_RECORDS)


@pytest.mark.parametrize("mode", MODES)
def test_progress_starts_where_an_earlier_attempt_ended_and_ends_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    cut_by(monkeypatch, TINY)
    records = plan(["keep"] * 6 + ["fail"] + ["keep"] * 10)
    dataset = write_input(tmp_path / "input.jsonl", records)
    failing = operator_for(mode, 1, _ignore_errors=False)
    with pytest.raises(RecordError):
        run(failing, dataset, node(tmp_path), run="first")
    listener = Listener()
    operator = operator_for(mode, 1)
    report = run(operator, dataset, node(tmp_path), resume=ResumePolicy.AUTO, progress=listener)
    assert listener.states[0].records == listener.states[0].resumed == 6
    assert (listener.states[-1].records, listener.states[-1].failed) == (17, 1)
    assert listener.states[-1].input_bytes == listener.states[-1].total_bytes
    assert listener.notes == ["resuming: 6 records settled by run first"]
    assert report.manifest.attempts == ["first", "test"]


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_step_resumes_when_its_operator_is_fixed(tmp_path: Path, mode: str) -> None:
    records = plan(["keep"] * 30 + ["fail"] + ["keep"] * 30)
    dataset = write_input(tmp_path / "input.jsonl", records)
    with pytest.raises(RecordError) as caught:
        run(operator_for(mode, 2, _ignore_errors=False), dataset, node(tmp_path))
    assert (caught.value.index, caught.value.line) == (30, 31)
    assert caught.value.path == str(dataset.path)
    if mode == "single":
        assert isinstance(caught.value.__cause__, ValueError)
    report = run(operator_for(mode, 2), dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    assert 0 < report.manifest.resumed < 61
    assert node(tmp_path).result.read_bytes() == expected_results(records)
    assert [row["index"] for row in error_rows(node(tmp_path))] == [30]


@pytest.mark.parametrize("mode", MODES)
def test_nothing_but_results_is_left_in_the_folder(tmp_path: Path, dataset, mode: str) -> None:
    run(operator_for(mode, 2), dataset, node(tmp_path))
    left = sorted(path.name for path in node(tmp_path).path.iterdir())
    results = ["node_results.jsonl", "node_results.jsonl.json"]
    assert left == [".lock", ".node_results.kept", "node_error.jsonl", *results]


def test_a_stopped_run_does_not_publish_and_the_next_run_repeats_nothing(
    tmp_path: Path, dataset
) -> None:
    def once_all_are_done() -> str | None:
        return "its run has ended" if len(_CALLS) == len(_RECORDS) else None

    with pytest.raises(RunStoppedError, match="its run has ended"):
        run(counted(), dataset, node(tmp_path), should_stop=once_all_are_done)
    assert not node(tmp_path).result.exists()
    run(counted(), dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    assert len(_CALLS) == len(_RECORDS)
    assert node(tmp_path).result.exists()


@data_register("data.executor_tests")
def grow_the_input(record, path=""):
    if record["n"] == 5:
        with Path(path).open("ab") as file:
            file.write(b'{"n":6}\n')
    return record


@pytest.mark.parametrize("mode", ["single", "thread"])
def test_an_input_that_changes_after_its_last_record_was_read_publishes_nothing(
    tmp_path: Path, mode: str
) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(6)])
    growing = grow_the_input(path=str(dataset.path), _concurrency_mode=mode)
    with pytest.raises(InputError, match="changed while it was being processed"):
        run(growing, dataset, node(tmp_path))
    assert not node(tmp_path).result.exists()


def test_an_input_rewritten_with_its_old_size_and_time_is_never_resumed(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}, {"n": 2}])
    os.utime(dataset.path, ns=(5, 5))
    stopping = iter([None, "stop"])
    with pytest.raises(RunStoppedError):
        run(counted(), dataset, node(tmp_path), should_stop=lambda: next(stopping))
    dataset.path.write_bytes(b'{"n":3}\n{"n":4}\n')
    os.utime(dataset.path, ns=(5, 5))
    report = run(counted(), dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    assert report.dataset.read() == [{"n": 3}, {"n": 4}]
    assert "the input has changed" in report.notes[0]


@data_register("data.executor_tests")
def dated(record, *, context, gate=""):
    if record["n"] == 5 and not Path(gate).exists():
        raise StopRun("closed")
    return {**record, "started": context.started}


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_an_attempt_that_resumes_knows_when_the_first_one_began(tmp_path: Path, mode: str) -> None:
    operator = dated(gate=str(tmp_path / "gate"), _concurrency_mode=mode, _max_workers=1)
    dataset = write_input(tmp_path / "input.jsonl", [{"n": number} for number in range(8)])
    with pytest.raises(RunStoppedError):
        run(operator, dataset, node(tmp_path), run="first")
    (tmp_path / "gate").touch()
    report = run(operator, dataset, node(tmp_path), run="second", resume=ResumePolicy.AUTO)
    other = run(operator, dataset, node(tmp_path, "other"))

    times = [{one["started"] for one in result.dataset} for result in (report, other)]
    assert report.rows_resumed, report.notes
    assert [len(one) for one in times] == [1, 1]
    assert datetime.fromisoformat(times[0].pop()) < datetime.fromisoformat(times[1].pop())
