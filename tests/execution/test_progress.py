import logging
import types

import pytest

from dagster_dataops.errors import RunStoppedError
from dagster_dataops.execution import progress, ticker
from dagster_dataops.execution.progress import ConsoleProgress, LogPace, duration
from dagster_dataops.execution.ticker import Ticker
from tests.nodes import ProgressState, Quiet


def _state(records: int = 50, failed: int = 0, total: int | None = 200) -> ProgressState:
    return ProgressState(records, failed, records * 10, 2000, total, 10)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (_state(), "50 of 200 records (25.0 %), 4.0 records/s, 38 s left"),
        (_state(failed=3), "50 of 200 records (25.0 %), 4.0 records/s, 38 s left, 3 failed"),
        (_state(total=None), "50 of ~200 records (25.0 %), 4.0 records/s, 38 s left"),
        (_state(records=0, total=None), "0 records"),
        (_state(total=20_000), "50 of 20,000 records (0.2 %), 4.0 records/s, 1 h 23 min left"),
        (_state(total=2_000), "50 of 2,000 records (2.5 %), 4.0 records/s, 8 min 08 s left"),
    ],
)
def test_a_state_describes_itself(state: ProgressState, text: str) -> None:
    assert state.describe(10.0) == text


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"cost": 1.265, "calls": 50}, ", $1.26 so far, $5.06 expected, calls 50"),
        ({"cost": 0.00125, "model/a": 50}, ", $0.0013 so far, $0.0050 expected"),
        ({"calls_without_usage": 2, "cost": 2.0}, ", ~$2.00 so far, ~$8.00 expected"),
        ({"cost": 0.0}, ", $0.00 so far, $0.00 expected"),
    ],
)
def test_a_cost_is_shown_so_far_and_as_expected(counts: dict[str, float], text: str) -> None:
    shown = _state()._replace(counts=counts).describe(10.0)
    assert text in shown
    assert "model" not in shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0 s"),
        (59.6, "1 min 00 s"),
        (83, "1 min 23 s"),
        (3600, "1 h 00 min"),
        (90061, "25 h 01 min"),
    ],
)
def test_a_duration_is_written_with_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_zero_seconds_give_no_rate() -> None:
    assert _state().describe(0.0) == "50 of 200 records (25.0 %)"


def test_log_lines_become_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    pace = LogPace(first_seconds=10, growth=2)
    due = []
    for second in range(100):
        now[0] = float(second)
        if pace.due():
            due.append(second)
    assert due == [10, 30, 70]


def test_off_a_terminal_lines_go_to_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(LogPace, "due", lambda self: True)
    console = ConsoleProgress(bar=False)
    with caplog.at_level(logging.INFO, "dagster_dataops"):
        console.start("node", _state(0))
        console.note("resuming: 10 records")
        console.update(_state())
        console.finish(_state(200))
    assert caplog.messages[0] == "node: resuming: 10 records"
    assert caplog.messages[1].startswith("node: 50 of 200 records")


def test_on_a_terminal_a_bar_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    console = ConsoleProgress(bar=True, seconds_between=0)
    console.start("node", _state(10))
    console.update(_state(50, failed=2))
    console.finish(_state(200, failed=2))
    drawn = capsys.readouterr().err
    assert "node" in drawn
    assert "200/200" in drawn
    assert "failed=2" in drawn


def test_a_bar_leaves_no_thread_that_prevents_forking() -> None:
    import threading

    before = set(threading.enumerate())
    console = ConsoleProgress(bar=True)
    console.start("node", _state(10))
    assert set(threading.enumerate()) <= before
    console.finish(_state(10))


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = Quiet()
    quiet.start("node", _state())
    quiet.note("x")
    quiet.update(_state())
    quiet.finish(_state())
    assert capsys.readouterr() == ("", "")


_STATE = ProgressState(1, 0, 10, 100, None, 0)


class Shown(Quiet):
    def __init__(self) -> None:
        self.count = 0

    def update(self, state: ProgressState) -> None:
        assert state is _STATE
        self.count += 1


def test_progress_is_shown_ten_times_and_a_stop_is_checked_once_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = types.SimpleNamespace(now=100.0)
    monkeypatch.setattr(ticker, "time", types.SimpleNamespace(monotonic=lambda: clock.now))
    shown, checks = Shown(), list[float]()

    def should_stop() -> None:
        checks.append(clock.now)

    ticking = Ticker("data.test", lambda: _STATE, shown, should_stop)
    for tenth in range(200):
        clock.now = 100 + tenth / 64
        ticking.tick()
    assert 28 <= shown.count <= 29
    assert len(checks) == 3


def test_a_reason_to_stop_is_raised_with_the_operator() -> None:
    ticking = Ticker("data.test", lambda: _STATE, Quiet(), lambda: "its run has ended")
    with pytest.raises(RunStoppedError, match=r"data\.test.*its run has ended"):
        ticking.tick()
