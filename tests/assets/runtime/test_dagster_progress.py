"""Tests of progress on the run page and the asset page: few, complete lines."""

import threading

import pytest

from dagster_dataops.assets.runtime.dagster_progress import DagsterProgress
from dagster_dataops.assets.runtime.messenger import Messenger
from dagster_dataops.execution.progress import ProgressState


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
    clock.now += 2.0
    progress.update(state(200, failed=3))
    assert log.lines == [
        "upper: 200 of 1,000 records (20.0 %), 100.0 records/s, 8 s left, 3 failed"
    ]


def test_lines_come_soon_and_then_ever_more_rarely(clock: Clock) -> None:
    progress, log = started()
    for _ in range(36_000):  # an hour
        clock.now += 0.1
        progress.update(state(1))
    assert 15 < len(log.lines) < 30


def test_a_run_of_a_moment_logs_no_progress(clock: Clock) -> None:
    progress, log = started()
    progress.update(state(1_000))
    progress.finish(state(1_000))
    assert log.lines == []


def test_notes_are_logged_at_once_with_the_name_of_the_node(clock: Clock) -> None:
    progress, log = started()
    progress.note("resuming: 5 of 10 records settled by run r")
    assert log.lines == ["upper: resuming: 5 of 10 records settled by run r"]


def test_the_bar_of_the_compute_log_goes_to_standard_error(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    progress, _ = started()
    progress.finish(state(1_000))
    assert "1000/1000" in capsys.readouterr().err


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
