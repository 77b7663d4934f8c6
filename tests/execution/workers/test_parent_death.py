import os
import signal
import time
from collections.abc import Callable

import pytest

from dagster_dataops.execution.workers import parent_death
from dagster_dataops.execution.workers.parent_death import end_with_parent
from tests.faults.crashing import in_child


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


def test_a_process_bound_to_a_pipe_that_has_closed_ends_at_once() -> None:
    reader, writer = os.pipe()

    def bind() -> None:
        os.close(writer)
        end_with_parent(reader)

    os.close(writer)
    writer = os.dup(reader)  # something that the child may close
    assert in_child(bind) in {1, -9}
    os.close(reader)
    os.close(writer)


@pytest.mark.slow
def test_every_process_bound_to_a_pipe_ends_with_it() -> None:
    reader, writer = os.pipe()
    bound, binds = os.pipe()
    children = []
    for _ in range(3):
        child = os.fork()
        if not child:
            os.close(writer)
            end_with_parent(reader)
            os.write(binds, b".")
            time.sleep(60)
            os._exit(0)
        children.append(child)
    for _ in children:
        assert os.read(bound, 1)
    os.close(writer)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert set(statuses) <= {-9, 1}
    for descriptor in (reader, bound, binds):
        os.close(descriptor)
