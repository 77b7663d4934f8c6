"""Tests of dagster_dataops.checkpoints.resume.start: the kind of each start."""

import types
from pathlib import Path
from typing import Annotated, Any

import pytest

from dagster_dataops import Operational
from dagster_dataops.checkpoints.resume.start import decide_start
from dagster_dataops.checkpoints.resume.start_decision import (
    StartDecision,
    StartKind,
    StartRequest,
)
from dagster_dataops.execution import executor
from tests.execution.helpers import TINY, cut_by, node, run, write_input
from tests.nodes import ResumePolicy
from tests.registries import OperatorRegistry

_RECORDS = [{"n": n} for n in range(10)]
_SWITCH: Annotated[Any, Operational] = types.SimpleNamespace(stop_at=None, fail_at=None)


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[StartDecision]:
    """Every start that is decided."""
    decided: list[StartDecision] = []

    def recorded(request: StartRequest) -> StartDecision:
        decided.append(decide_start(request))
        return decided[-1]

    monkeypatch.setattr(executor, "decide_start", recorded)
    cut_by(monkeypatch, TINY)
    return decided


def _operator(**settings: Any) -> Any:
    @OperatorRegistry(print)("data.starts", _concurrency_mode="single")
    def keep(record: dict) -> None:
        if record["n"] == _SWITCH.stop_at:
            raise KeyboardInterrupt
        if record["n"] == _SWITCH.fail_at:
            raise ValueError

    return keep(**settings)


def test_an_unfinished_run_is_resumed_and_a_finished_one_is_done(
    tmp_path: Path, starts: list[StartDecision], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = write_input(tmp_path / "input.jsonl", _RECORDS)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(_SWITCH, "stop_at", 5)
        run(_operator(), dataset, node(tmp_path))
    run(_operator(), dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    report = run(_operator(), dataset, node(tmp_path), run="later", reuse_finished=True)
    assert [start.kind for start in starts] == [StartKind.FRESH, StartKind.RESUME, StartKind.DONE]
    assert starts[1].note == "resuming: 5 records settled by run test"
    assert starts[2].published == report.manifest


def test_failed_records_are_retried_once_and_then_nothing_is_to_do(
    tmp_path: Path, starts: list[StartDecision], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = write_input(tmp_path / "input.jsonl", _RECORDS)
    with monkeypatch.context() as patch:
        patch.setattr(_SWITCH, "fail_at", 3)
        run(_operator(), dataset, node(tmp_path))
    for name in ("second", "third"):
        run(_operator(), dataset, node(tmp_path), run=name, resume=ResumePolicy.FAILED_RECORDS)
    kinds = [StartKind.FRESH, StartKind.RETRY_FAILED, StartKind.DONE]
    assert [start.kind for start in starts] == kinds
    assert "the other 9 are kept" in starts[1].note
    assert not starts[2].takes_over


def test_outcomes_of_other_inputs_are_looked_up_where_they_are_kept(
    tmp_path: Path, starts: list[StartDecision]
) -> None:
    operator = _operator(_reuse_outcomes=True)
    auto = {"resume": ResumePolicy.AUTO}
    run(operator, write_input(tmp_path / "old.jsonl", _RECORDS), node(tmp_path), **auto)
    longer = write_input(tmp_path / "new.jsonl", [*_RECORDS, {"n": 99}])
    run(operator, longer, node(tmp_path), run="second", **auto)
    other = write_input(tmp_path / "other.jsonl", [{"n": 1000}])
    run(operator, other, node(tmp_path), run="third", **auto)
    assert [start.kind for start in starts] == [StartKind.FRESH] * 3
    assert [len(start.sources) for start in starts] == [0, 1, 1]
