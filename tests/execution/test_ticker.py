import types

import pytest

from dagster_dataops.errors import RunStoppedError
from dagster_dataops.execution import ticker as module
from dagster_dataops.execution.progress import ProgressState, Quiet
from dagster_dataops.execution.ticker import Ticker

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
    monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=lambda: clock.now))
    shown, checks = Shown(), list[float]()

    def should_stop() -> None:
        checks.append(clock.now)

    ticker = Ticker("data.test", lambda: _STATE, shown, should_stop)
    for tenth in range(200):
        clock.now = 100 + tenth / 64
        ticker.tick()
    assert 28 <= shown.count <= 29
    assert len(checks) == 3


def test_a_reason_to_stop_is_raised_with_the_operator() -> None:
    ticker = Ticker("data.test", lambda: _STATE, Quiet(), lambda: "its run has ended")
    with pytest.raises(RunStoppedError, match=r"data\.test.*its run has ended"):
        ticker.tick()
