import os
import signal
import time

import pytest

from dagster_dataops.execution.workers import signals
from dagster_dataops.execution.workers.signals import Terminated, set_signals, signals_held_back
from tests.execution.engine import Stretch, Termination
from tests.faults.crashing import in_child


def _kill_myself(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(0)  # the interpreter looks for signals between two steps


def test_sigterm_is_raised_inside_the_block_at_once() -> None:
    def work() -> None:
        asked = set_signals()
        with pytest.raises(Terminated), asked:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)

    assert in_child(work) == 0


def test_sigterm_outside_waits_for_the_next_block() -> None:
    def work() -> None:
        asked = set_signals()
        _kill_myself(signal.SIGTERM)
        with pytest.raises(Terminated), asked:
            raise AssertionError("the block must not be entered")
        with pytest.raises(Terminated), asked:  # nor any later one
            raise AssertionError("the block must not be entered")

    assert in_child(work) == 0


def test_lines_are_settled_within_a_block() -> None:
    asked = Termination()

    def settle(lines: object, output: bytearray, until: float) -> Stretch:
        asked.request(signal.SIGTERM, None)
        raise AssertionError("it was not interrupted")

    with pytest.raises(Terminated):
        asked.during(settle)(iter(()), bytearray(), 0.0)
    asked.request(signal.SIGTERM, None)  # outside again: nothing is raised


def test_ctrl_c_is_left_to_the_parent() -> None:
    def work() -> None:
        set_signals()
        _kill_myself(signal.SIGINT)

    assert in_child(work) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_delayed_signals_arrive_at_the_end_of_the_block(number: signal.Signals) -> None:
    def work() -> None:
        def interrupt(_number: int, _frame: object) -> None:
            raise KeyboardInterrupt

        signal.signal(number, interrupt)
        reached = False
        with pytest.raises(KeyboardInterrupt), signals_held_back():
            _kill_myself(number)
            reached = True
        assert reached

    assert in_child(work) == 0


@pytest.mark.slow
def test_the_mask_is_as_before_whenever_a_signal_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "SIGNALS", (signal.SIGALRM,))  # a timer can send this one

    def interrupted() -> None:
        def interrupt(_number: int, _frame: object) -> None:
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        for microseconds in range(1, 400, 5):
            try:
                signal.setitimer(signal.ITIMER_REAL, microseconds * 1e-6)
                for _ in range(20):
                    with signals_held_back():
                        pass
                time.sleep(1)
            except KeyboardInterrupt:
                assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())

    assert in_child(interrupted) == 0


def test_a_process_forked_within_hears_signals_only_once_it_has_set_them() -> None:
    def work() -> None:
        with signals_held_back():
            child = os.fork()
            if not child:
                _kill_myself(signal.SIGINT)
                _kill_myself(signal.SIGTERM)
                asked = set_signals()
                try:
                    with asked:
                        os._exit(1)
                except Terminated:
                    os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

    assert in_child(work) == 0
