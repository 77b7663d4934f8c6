"""Tests that a step stops when its run has ended, and only then."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from dagster_dataops.assets.runtime.messenger import Messenger
from dagster_dataops.assets.runtime.run_monitor import RunMonitor
from dagster_dataops.errors import RunStoppedError
from tests.assets.helpers import definitions_of, execute, pipeline_of
from tests.registries import OperatorRegistry

Records = Callable[[int], Path]


@dg.job
def nothing() -> None:
    """A job whose runs are monitored."""


@pytest.fixture
def messenger(monkeypatch: pytest.MonkeyPatch) -> Messenger:
    monkeypatch.setattr("dagster_dataops.assets.runtime.run_monitor._SECONDS", 0.0)
    return Messenger()


def context_of(instance: dg.DagsterInstance, status: dg.DagsterRunStatus) -> Any:
    run = instance.create_run_for_job(nothing, status=status)
    return SimpleNamespace(run=run, run_id=run.run_id, instance=instance)


def asked(watch: RunMonitor, messenger: Messenger) -> str | None:
    """Return the answer to a first query."""
    watch()
    assert messenger.wait(10)
    return watch()


def test_a_step_continues_as_long_as_its_run(
    instance: dg.DagsterInstance, messenger: Messenger
) -> None:
    context = context_of(instance, dg.DagsterRunStatus.STARTED)
    assert asked(RunMonitor(context, messenger), messenger) is None


def test_a_step_stops_when_its_run_has_ended_without_it(
    instance: dg.DagsterInstance, messenger: Messenger
) -> None:
    context = context_of(instance, dg.DagsterRunStatus.FAILURE)
    reason = f"its run {context.run.run_id} has ended with status FAILURE"
    assert asked(RunMonitor(context, messenger), messenger) == reason


def test_a_step_stops_when_its_run_is_being_terminated(
    instance: dg.DagsterInstance, messenger: Messenger
) -> None:
    context = context_of(instance, dg.DagsterRunStatus.CANCELING)
    reason = f"its run {context.run.run_id} is being terminated"
    assert asked(RunMonitor(context, messenger), messenger) == reason


def test_a_database_that_is_away_for_a_moment_stops_nothing(
    instance: dg.DagsterInstance, messenger: Messenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = context_of(instance, dg.DagsterRunStatus.FAILURE)
    watch = RunMonitor(context, messenger)
    with monkeypatch.context() as away:
        away.delattr(type(instance), "get_run_by_id")
        assert asked(watch, messenger) is None
    assert messenger.wait(10)
    assert asked(watch, messenger) is not None


def test_a_hanging_database_delays_nothing(
    instance: dg.DagsterInstance, messenger: Messenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    comes_back = threading.Event()
    questions: list[str] = []

    def hang(run_id: str) -> None:
        questions.append(run_id)
        comes_back.wait()

    context = context_of(instance, dg.DagsterRunStatus.FAILURE)
    monkeypatch.setattr(instance, "get_run_by_id", hang)
    beside = threading.Thread(target=comes_back.wait)  # as there are in Dagster's processes
    beside.start()
    watch = RunMonitor(context, messenger)
    assert [watch() for _ in range(100)] == [None] * 100
    comes_back.set()
    beside.join()
    assert messenger.wait(10)
    assert len(questions) == 1


def test_a_running_operator_stops_when_its_run_has_ended(
    registry: OperatorRegistry,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []

    @registry("data.text", _concurrency_mode="thread", _max_workers=2)
    def slow(record: dict) -> None:
        calls.append(record["id"])
        if len(calls) == 3:
            run = instance.get_runs()[0]
            instance.report_run_failed(run, "its worker was killed")
        time.sleep(0.01)

    monkeypatch.setattr("dagster_dataops.assets.runtime.run_monitor._SECONDS", 0.05)
    monkeypatch.setattr("dagster_dataops.execution.ticker._STOP_CHECK_SECONDS", 0.05)
    definitions = definitions_of(pipeline_of(slow=slow()), records(3000), root)
    with pytest.raises(RunStoppedError, match="has ended with status FAILURE"):
        execute(definitions, instance)
    assert len(calls) < 300
