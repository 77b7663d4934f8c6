"""Time limits in the main thread."""

import signal
import threading
import time
from pathlib import Path

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.execution.timeouts.sigalrm import Alarm, alarm_obstacle
from tests.execution.engine import RecordTimeout, calling_each
from tests.execution.helpers import Listener, call_one, error_rows, node, run, run_over, write_input
from tests.execution.timeouts.hanging import GROUP, hangs

# pytest-timeout's SIGALRM would prevent the product's.
pytestmark = pytest.mark.timeout(method="thread")


@pytest.mark.slow
def test_an_alarm_raises_again_if_the_operator_catches_it(tmp_path: Path) -> None:
    caught = []

    @data_register(GROUP, _concurrency_mode="single", _timeout=0.05, _stop_after_failures=0)
    def catches(record):
        for _ in range(2):
            try:
                time.sleep(30)
            except Exception as error:
                caught.append(error)
                if len(caught) == 2:
                    raise

    run(catches(), write_input(tmp_path / "input.jsonl", [{"n": 1}]), node(tmp_path))
    assert [type(error) for error in caught] == [RecordTimeout] * 2
    assert [row["exception"] for row in error_rows(node(tmp_path))] == ["RecordTimeout"]


def test_a_late_alarm_has_no_effect() -> None:
    """The signal is sent at every moment without a call, or during another call."""
    alarm = Alarm(30)
    with alarm.installed():
        signal.raise_signal(signal.SIGALRM)
        limited = alarm.around(lambda _: signal.raise_signal(signal.SIGALRM))
        limited({})  # the one of the call before, arriving in this one
        signal.raise_signal(signal.SIGALRM)
    with Alarm(0.001).installed():
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.slow
def test_calls_about_as_long_as_their_limit_end_well_or_in_time() -> None:
    """Each record has exactly one outcome, and no exception is raised outside its call."""

    @data_register(GROUP)
    def nearly(record):
        until = time.perf_counter() + 0.0005 + record["n"] * 1e-6
        while time.perf_counter() < until:
            pass
        return record

    alarm = Alarm(0.001)
    with alarm.installed(), calling_each(nearly(), (), alarm.around) as settle:
        outcomes = [call_one(settle, b'{"n":%d}' % (n % 1000)) for n in range(1000)]
    good = [outcome for outcome in outcomes if isinstance(outcome, bytes)]
    bad = [outcome for outcome in outcomes if not isinstance(outcome, bytes)]
    assert len(good) + len(bad) == 1000
    assert {failure.exception for failure in bad if failure} <= {"RecordTimeout"}
    assert all(bad)


def test_an_alarm_of_other_code_is_not_changed(tmp_path: Path) -> None:
    rung = threading.Event()
    before = signal.signal(signal.SIGALRM, lambda *_: rung.set())
    try:
        listener = Listener()
        run_over(
            tmp_path,
            hangs(_concurrency_mode="single"),
            [{"n": 1, "hang": False}],
            progress=listener,
        )
        assert listener.notes == [
            "_timeout=1.5 is not kept in single mode here: something else uses SIGALRM",
            "changed 0 of 1 record",
        ]
        signal.raise_signal(signal.SIGALRM)
        assert rung.is_set()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_without_signals_no_alarm_can_be_used() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(alarm_obstacle()))
    thread.start()
    thread.join()
    assert found == ["the run is not in the main thread"]
    assert alarm_obstacle() is None
