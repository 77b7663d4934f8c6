import os
import signal
import time
from collections.abc import Callable

import pytest

from dagster_dataops.execution.workers import parent_death, signals
from dagster_dataops.execution.workers.parent_death import end_with_parent
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


def _bound(work: Callable[[], None]) -> tuple[int, int]:
    """Start a process with a pipe to its parent; return it and the end that must stay open."""
    reader, writer = os.pipe()
    ready, told = os.pipe()
    child = os.fork()
    if not child:
        os.close(writer)
        end_with_parent(reader)
        os.write(told, b"x")
        work()
        os._exit(0)
    os.read(ready, 1)
    for number in (reader, ready, told):
        os.close(number)
    return child, writer


def _ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _ignore_everything() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGIO, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        try:
            time.sleep(60)
        except BaseException:  # noqa: BLE001, S112 - as stubborn as can be
            continue


def _hold_the_interpreter() -> None:
    import re

    re.match(r"(a+)+$", "a" * 40 + "b")


@pytest.mark.parametrize("work", [_ignore_everything, _hold_the_interpreter])
def test_any_process_ends_with_the_pipe_to_its_parent(work: Callable[[], None]) -> None:
    child, writer = _bound(work)
    os.close(writer)
    assert _ended(child) == -signal.SIGKILL


def test_a_process_lives_as_long_as_the_pipe_to_its_parent() -> None:
    child, writer = _bound(lambda: time.sleep(0.3))
    assert _ended(child) == 0
    os.close(writer)


def test_where_the_kernel_does_not_signal_a_thread_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent_death, "_F_SETSIG", None)
    child, writer = _bound(lambda: time.sleep(60))
    os.close(writer)
    assert _ended(child) == 1


def test_without_proc_a_thread_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> int:
        raise FileNotFoundError(2, "No such file or directory")

    with monkeypatch.context() as patch:
        patch.setattr(parent_death.os, "open", refuse)
        child, writer = _bound(lambda: time.sleep(60))
    os.close(writer)
    assert _ended(child) == 1


def test_one_that_closed_before_it_was_bound_ends_the_process() -> None:
    reader, writer = os.pipe()
    os.close(writer)
    assert in_child(lambda: end_with_parent(reader)) in {1, -signal.SIGKILL}
    os.close(reader)
