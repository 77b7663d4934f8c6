"""Bells that ring by themselves, in forked copies all the time."""

import gc
import os
from pathlib import Path

import pytest

from dagster_dataops.concurrency import timer
from dagster_dataops.concurrency.fork_safety import may_fork
from dagster_dataops.concurrency.timer import Bell
from tests.faults.crashing import in_child, wait_until


def _threads() -> set[str]:
    return {task.name for task in Path("/proc/self/task").iterdir()}


def _rung() -> Bell:
    """Return a bell whose thread is there."""
    ringing = Bell(9.0)
    ringing.start()
    wait_until(lambda: ringing.native_id is not None, 10, "its thread")
    return ringing


def test_it_rings_again_after_it_was_hushed() -> None:
    ringing = Bell(0.01)
    assert not ringing.rung
    ringing.start()
    for _ in range(3):
        wait_until(lambda: bool(ringing.rung), 10, "the bell")
        ringing.hush()
    ringing.stop()
    ringing.hush()
    assert not ringing.rung


def test_without_time_between_it_rings_always_and_needs_no_thread() -> None:
    before = _threads()
    ringing = Bell(0)
    ringing.start()
    ringing.hush()
    assert ringing.rung
    assert _threads() == before


def test_it_is_started_and_stopped_once_however_often_it_is_asked() -> None:
    before = _threads()
    ringing = _rung()
    ringing.start()
    assert len(_threads() - before) == 1
    ringing.stop()
    ringing.stop()
    wait_until(lambda: _threads() == before, 10, "the end of its thread")


def test_a_forked_copy_is_rung_out_at_once() -> None:
    ringing = Bell(9.0)
    ringing.start()

    def copy() -> None:
        ringing.hush()
        assert ringing.rung

    assert in_child(copy) == 0
    assert in_child(ringing.stop) == 0  # waits for no thread, as there is none
    assert not ringing.rung
    ringing.stop()


def test_its_thread_hinders_no_fork_and_is_forgotten_with_it() -> None:
    wait_until(may_fork, 10, "threads of other tests are gone")
    ringing = _rung()
    assert ringing.native_id in timer.native_ids()
    assert ringing.native_id != os.getpid()
    assert may_fork()
    ringing.stop()
    del ringing
    gc.collect()
    wait_until(may_fork, 10, "its thread is gone")


def test_a_thread_that_is_about_to_begin_or_to_be_gone_hinders_no_fork() -> None:
    wait_until(may_fork, 10, "threads of other tests are gone")
    for _ in range(200):
        ringing = Bell(9.0)
        ringing.start()
        assert may_fork()
        ringing.stop()
        assert may_fork()


@pytest.mark.parametrize("started", [True, False])
def test_a_stopped_bell_has_no_thread(started: bool) -> None:
    before = _threads()
    ringing = Bell(9.0)
    if started:
        ringing.start()
    ringing.stop()
    assert ringing.native_id is None
    wait_until(lambda: _threads() == before, 10, "the end of its thread")
