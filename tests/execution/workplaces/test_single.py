import threading
from pathlib import Path

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import RecordError, RunStoppedError
from tests.execution.helpers import (
    TINY,
    cut_by,
    node,
    run,
    run_over,
    run_single,
    sink_for,
    write_input,
)

_GROUP = "data.single_tests"


def test_records_are_handled_in_the_callers_thread(tmp_path: Path) -> None:
    seen = set()

    @data_register(_GROUP, _concurrency_mode="single")
    def where(record):
        seen.add(threading.current_thread())

    run(where(), write_input(tmp_path / "input.jsonl", [{"n": 1}] * 5), node(tmp_path))
    assert seen == {threading.current_thread()}


def test_the_error_of_a_failing_step_has_its_cause(tmp_path: Path) -> None:
    @data_register(_GROUP, _concurrency_mode="single", _ignore_errors=False)
    def divide(record):
        return {"n": 1 / record["n"]}

    with pytest.raises(RecordError, match="on record 1 .*line 2.*ZeroDivisionError") as caught:
        run_over(tmp_path, divide(), [{"n": 1}, {"n": 0}])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "1 / record" in "".join(caught.value.traceback_text)


def test_a_stop_keeps_settled_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @data_register(_GROUP)
    def same_again(record):
        return record

    cut_by(monkeypatch, TINY)
    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(20)])
    operator = same_again(_concurrency_mode="single")
    sink = sink_for(operator, dataset, node(tmp_path), should_stop=lambda: "told to")
    with pytest.raises(RunStoppedError, match="told to"):
        run_single(sink)
    assert 0 < sink.checkpoint.table.records < 20
    sink.checkpoint.close()
