"""Messages, progress and observations of a running step."""

import logging
import signal
import threading
import time
import types
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsResource, JsonlDataset, assets
from dagster_dataops.assets.runtime.dagster_progress import DagsterProgress
from dagster_dataops.assets.runtime.messenger import Messenger
from dagster_dataops.assets.runtime.observations import Observations, progress_metadata
from dagster_dataops.assets.runtime.run_monitor import RunMonitor
from dagster_dataops.errors import RunStoppedError
from dagster_dataops.execution.progress import ProgressState
from tests.assets.helpers import Records, definitions_of, execute, pipeline_of, resource_at
from tests.registries import OperatorRegistry


@pytest.fixture
def another_thread() -> Iterator[None]:
    """Return a thread beside the main one, as in every process that Dagster starts."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.usefixtures("another_thread")
@pytest.mark.parametrize("finished", [False, True])
def test_a_hanging_call_delays_only_the_calls_after_it_and_finish_drops_them(
    finished: bool,
) -> None:
    messenger, goes_on, told = Messenger(), threading.Event(), list[str]()
    began = time.monotonic()
    assert messenger.wait(60)  # for nothing
    assert time.monotonic() - began < 60
    messenger.send(goes_on.wait)
    messenger.send(lambda: told.append("second"))
    assert messenger.busy
    assert not messenger.wait(0.01)
    if finished:
        messenger.finish(0.01)
    assert told == []
    goes_on.set()
    assert messenger.wait(10)
    assert told == ([] if finished else ["second"])
    assert not messenger.busy


@pytest.mark.usefixtures("another_thread")
def test_calls_are_made_in_order_by_a_thread_that_takes_no_signals_and_ends() -> None:
    messenger, told = Messenger(), list[int]()
    threads: set[threading.Thread] = set()
    masks = []

    def call(number: int) -> Callable[[], None]:
        def tell() -> None:
            told.append(number)
            threads.add(threading.current_thread())
            masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))

        return tell

    for number in range(100):
        messenger.send(call(number))
    assert messenger.wait(10)
    assert told == list(range(100))
    assert threading.main_thread() not in threads
    assert all({signal.SIGINT, signal.SIGTERM} <= mask for mask in masks)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.usefixtures("another_thread")
def test_a_call_that_fails_is_logged_and_the_next_one_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def away() -> None:
        msg = "the database is away"
        raise OSError(msg)

    messenger, told = Messenger(), list[str]()
    with caplog.at_level(logging.WARNING, "dagster_dataops"):
        messenger.send(away)
        messenger.send(lambda: told.append("next"))
        assert messenger.wait(10)
    assert told == ["next"]
    assert caplog.messages == ["Could not send to Dagster: OSError: the database is away"]


def test_a_process_of_one_thread_stays_one_that_can_fork(run_python: Callable[..., str]) -> None:
    printed = run_python(
        """
import threading
from dagster_dataops.assets.runtime.messenger import Messenger

messenger = Messenger()
messenger.send(lambda: print("told by", threading.current_thread().name))
print("threads", threading.active_count(), "busy", messenger.busy)
"""
    )
    assert printed == "told by MainThread\nthreads 1 busy False\n"


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("dagster_dataops.execution.progress.time", clock)
    return clock


class Log:
    """Replaces the step's log."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, text: str) -> None:
        self.lines.append(text)


def state(records: int, failed: int = 0) -> ProgressState:
    return ProgressState(records, failed, records * 10, 10_000, 1_000, 0)


class Told(DagsterProgress):
    """Waits until every line is sent."""

    def update(self, state: ProgressState) -> None:
        super().update(state)
        assert self._messenger.wait(10)


def started() -> tuple[DagsterProgress, Log]:
    log = Log()
    progress = Told(log)  # type: ignore[arg-type]
    progress.start("upper", state(0))
    return progress, log


def test_a_line_holds_done_total_share_rate_time_left_and_failed(clock: Clock) -> None:
    progress, log = started()
    progress.note("resuming: 5 of 10 records settled by run r")
    clock.now += 2.0
    progress.update(state(200, failed=3))
    assert log.lines == [
        "upper: resuming: 5 of 10 records settled by run r",
        "upper: 200 of 1,000 records (20.0 %), 100.0 records/s, 8 s left, 3 failed",
    ]


def test_a_run_of_a_moment_shows_its_bar_in_the_compute_log_alone(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    progress, log = started()
    progress.update(state(1_000))
    progress.finish(state(1_000))
    assert log.lines == []
    assert "1000/1000" in capsys.readouterr().err


def test_lines_come_soon_and_then_ever_more_rarely(clock: Clock) -> None:
    progress, log = started()
    for _ in range(36_000):  # an hour
        clock.now += 0.1
        progress.update(state(1))
    assert 15 < len(log.lines) < 30


def test_a_hanging_database_costs_log_lines_and_delays_nothing(clock: Clock) -> None:
    comes_back = threading.Event()

    class Hanging(Log):
        def info(self, text: str) -> None:
            comes_back.wait()
            super().info(text)

    log = Hanging()
    beside = threading.Thread(target=comes_back.wait)  # as there are in Dagster's processes
    beside.start()
    messenger = Messenger()
    progress = DagsterProgress(log, messenger=messenger)  # type: ignore[arg-type]
    progress.start("upper", state(0))
    for _ in range(1000):
        clock.now += 1.0
        progress.update(state(1))
    comes_back.set()
    beside.join()
    assert messenger.wait(10)
    assert len(log.lines) == 1
    progress.update(state(500))
    progress.finish(state(500))
    assert log.lines[1:] == [
        "upper: 500 of 1,000 records (50.0 %), 0.5 records/s, 16 min 40 s left"
    ]


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


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("STARTED", None),
        ("FAILURE", "its run {} has ended with status FAILURE"),
        ("CANCELING", "its run {} is being terminated"),
    ],
)
def test_a_step_stops_when_its_run_has_ended_and_the_database_says_so(
    status: str,
    reason: str | None,
    instance: dg.DagsterInstance,
    messenger: Messenger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = context_of(instance, dg.DagsterRunStatus[status])
    watch = RunMonitor(context, messenger)
    with monkeypatch.context() as away:
        away.delattr(type(instance), "get_run_by_id")
        assert asked(watch, messenger) is None
    assert messenger.wait(10)
    assert asked(watch, messenger) == (reason and reason.format(context.run.run_id))


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


KEY = dg.AssetKey(["docs", "slow"])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the first observation at once instead of after seconds."""
    monkeypatch.setattr("dagster_dataops.assets.runtime.observations._FIRST_SECONDS", 0.0)


@pytest.fixture
def slow(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="thread", _max_workers=2)
    def slow(record: dict) -> None:
        time.sleep(0.02)
        if record["id"] == 5:
            raise ValueError

    return slow


def observed(instance: dg.DagsterInstance, key: dg.AssetKey = KEY) -> list[Any]:
    """Return the observations of an asset, the oldest first."""
    records = instance.fetch_observations(key, limit=100).records
    return [record.asset_observation for record in reversed(records)]


def shown(observation: Any) -> str:
    """Return the text of an observation, which has no other metadata."""
    ((name, value),) = observation.metadata.items()
    assert name == "dagster_dataops/progress"
    assert isinstance(value, dg.TextMetadataValue)
    return value.text or ""


@pytest.mark.slow
@pytest.mark.parametrize(("hours", "least"), [(1 / 6, 6), (1, 9), (100, 15), (1000, 18)])
def test_a_run_of_any_length_is_observed_at_most_twenty_times(
    hours: float, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("dagster_dataops.execution.progress.time", clock)
    nothing: Any = None
    observations = Observations(nothing, nothing, nothing)
    times = []
    for second in range(int(hours * 3600)):
        clock.now = 100.0 + second
        if observations.due():
            times.append(second)
    assert least <= len(times) <= 19  # and one at its end
    assert times[0] == 5
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses == sorted(pauses)


def test_progress_is_one_text_so_that_nothing_of_it_is_plotted_beside_results() -> None:
    begun = ProgressState(0, 0, 0, 10_000, None, 0)
    assert progress_metadata(begun, 0.0) == {
        "dagster_dataops/progress": "0 records",
    }
    assert progress_metadata(ProgressState(50, 2, 500, 2000, None, 10), 10.0) == {
        "dagster_dataops/progress": f"{'█' * 5}{'░' * 15} 50 of ~200 records (25.0 %), "
        "4.0 records/s, 38 s left, 2 failed",
    }
    done = progress_metadata(ProgressState(50, 0, 500, 500, 50, 0), 10.0)
    assert done["dagster_dataops/progress"].startswith(f"{'█' * 20} 50 of 50 records (100.0 %)")


def test_a_short_step_is_not_observed(
    slow: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    execute(definitions_of(pipeline_of(slow=slow()), records(10), root), instance)
    assert observed(instance) == []


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_step_is_observed_while_it_runs_and_materialized_once_at_its_end(
    registry: OperatorRegistry, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    seen: list[tuple[int, bool]] = []

    def look() -> None:
        materialized = instance.get_latest_materialization_event(KEY) is not None
        seen.append((len(observed(instance)), materialized))

    looks = types.SimpleNamespace(once=look)  # an object, whose code is not the operator's

    @registry("data.text", _concurrency_mode="thread", _max_workers=2)
    def slow(record: dict) -> None:
        time.sleep(0.02)
        if record["id"] == 5:
            raise ValueError
        if record["id"] == 90:
            looks.once()

    definitions = definitions_of(pipeline_of(slow=slow()), records(100), root)
    result = execute(definitions, instance)
    ((before, materialized),) = seen
    assert before >= 1
    assert not materialized
    found = [shown(observation) for observation in observed(instance)]
    assert "100 of ~100 records (100.0 %)" in found[-1]
    assert found[-1].endswith(", 1 failed")
    assert "100.0 %" not in found[0]
    (event,) = [e for e in result.get_asset_materialization_events() if e.asset_key == KEY]
    assert event.materialization.metadata["dagster/row_count"].value == 99
    latest = instance.get_latest_materialization_event(KEY)
    assert latest is not None
    assert latest.timestamp >= instance.fetch_observations(KEY, limit=1).records[0].timestamp


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_observations_leave_the_asset_with_the_data_version_of_its_content(
    slow: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline_of(slow=slow()), records(20), root)
    versions = []
    for _ in range(2):
        execute(definitions, instance)
        event = instance.get_latest_data_version_record(KEY)
        assert event is not None
        assert event.asset_materialization is not None
        versions.append((event.asset_materialization.tags or {})["dagster/data_version"])
    assert versions[0] == versions[1]
    assert observed(instance)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_observation_is_of_the_partition_and_asset_that_is_worked_on(
    elsewhere: bool, slow: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    source = JsonlDataset.of_file(records(20))

    @dg.asset(key=KEY, partitions_def=dg.StaticPartitionsDefinition(["a", "b"]))
    def parts(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> None:
        folder = dataops.folder(["scratch"] if elsewhere else KEY.path, context.partition_key)
        dataops.run_operator(context, slow(), [source], folder)

    given = {"dataops": resource_at(root)}
    assert dg.materialize([parts], resources=given, partition_key="b", instance=instance).success
    found = {observation.partition for observation in observed(instance)}
    assert found == (set() if elsewhere else {"b"})


@pytest.mark.usefixtures("quick")
def test_ops_are_not_observed(
    slow: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    job = assets.build_operator_job(
        pipeline_of(slow=slow()), source=records(20), resources={"dataops": resource_at(root)}
    )
    result = job.execute_in_process(instance=instance)
    assert result.success
    kinds = [event.event_type for event in result.all_events]
    assert dg.DagsterEventType.ASSET_OBSERVATION not in kinds


@pytest.mark.usefixtures("quick")
def test_assets_of_one_step_are_observed_separately(
    slow: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    source = JsonlDataset.of_file(records(20))
    keys = [KEY, dg.AssetKey(["docs", "slower"])]

    @dg.multi_asset(specs=[dg.AssetSpec(key) for key in keys])
    def both(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Any:
        for key in keys:
            dataops.run_operator(context, slow(), [source], dataops.folder(key.path))
            yield dg.MaterializeResult(key)

    given = {"dataops": resource_at(root)}
    assert dg.materialize([both], resources=given, instance=instance).success
    for key in keys:
        assert "20 of " in shown(observed(instance, key)[-1])
