import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from dagster_dataops.execution.backends import workers_ahead
from dagster_dataops.execution.handle import Worker
from dagster_dataops.execution.messages import Kind
from dagster_dataops.execution.pool import WorkerPool
from dagster_dataops.execution.worker import Assignment
from dagster_dataops.forking import may_fork
from tests.execution.helpers import act, plan, second_thread, write_input
from tests.faults.crashing import alive, wait_until


def _assignment(tmp_path: Path, segment: int) -> Assignment:
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 3))
    return Assignment(str(dataset.path), dataset.stamp(), str(tmp_path), segment, 99, True, True)


@pytest.mark.parametrize("spawned", [False, True], ids=["forked", "spawned"])
def test_workers_start_and_end_on_demand(tmp_path: Path, spawned: bool) -> None:
    pool = WorkerPool(act(), ())
    with second_thread(spawned):
        first = _assignment(tmp_path, 1)
        workers = [pool.start(first), pool.start(replace(first, segment=2))]
    pids = [worker.pid for worker in workers]
    assert [worker.connection.recv_bytes()[0] for worker in workers] == [Kind.READY] * 2
    pool.dismiss()
    pool.close(10.0)
    assert not alive(pids)
    assert [worker.status for worker in workers] == [0, 0]


@pytest.mark.parametrize("spawned", [False, True], ids=["forked", "spawned"])
def test_the_death_of_a_worker_is_told_in_words(tmp_path: Path, spawned: bool) -> None:
    pool = WorkerPool(act(), ())
    with second_thread(spawned):
        worker = pool.start(_assignment(tmp_path, 1))
    worker.connection.recv_bytes()
    worker.signal(signal.SIGKILL)
    assert worker.wait(10)
    assert worker.cause_of_death == "killed by SIGKILL"
    worker.signal(signal.SIGTERM)  # too late, and harmless
    pool.discard(worker)
    assert pool.workers == []
    pool.close(0.0)


def test_a_worker_that_was_begun_ahead_is_the_first_that_starts(tmp_path: Path) -> None:
    with second_thread(True):
        _serve_one(tmp_path)
        pool = WorkerPool(act(), ())
        pool.begin()
        (begun,) = pool.workers
        assert not pool.started
        assignment = _assignment(tmp_path, 3)
        first = pool.start(assignment)
        assert first is begun
        assert first.segment == 3
        second = pool.start(replace(assignment, segment=4))
    assert pool.started
    assert [each.connection.recv_bytes()[0] for each in (first, second)] == [Kind.READY] * 2
    pool.dismiss()
    pool.close(10.0)
    assert [first.status, second.status] == [0, 0]


def test_workers_that_nobody_needed_end_with_what_began_them(tmp_path: Path) -> None:
    with second_thread(True):
        _serve_one(tmp_path)
        with workers_ahead(act(_concurrency_mode="process"), 0) as pool:
            assert pool is not None
            (begun,) = pool.workers
        wait_until(lambda: not alive([begun.pid]), 10, "its end")
        pool.close(0.0)  # once more, harmless
        with pytest.raises(ZeroDivisionError), workers_ahead(act(), 0) as pool:
            raise ZeroDivisionError
    assert pool is None or not pool.workers


def test_no_worker_is_begun_ahead_where_none_is_at_hand() -> None:
    wait_until(may_fork, 10, "threads of other tests are gone")
    with second_thread(False), workers_ahead(act(_concurrency_mode="process"), 0) as pool:
        assert pool is not None
        assert not pool.workers
    with workers_ahead(act(_concurrency_mode="thread"), 0) as pool:
        assert pool is None


def _serve_one(tmp_path: Path) -> None:
    """Have a server that forks workers."""
    pool = WorkerPool(act(), ())
    pool.start(_assignment(tmp_path, 1))
    pool.close(0.0)


def test_every_way_to_die_has_words() -> None:
    worker = Worker(0, None, 1)  # type: ignore[arg-type]
    words = {}
    for status in (0, 3, -9, -11, -40):
        worker.status = status
        words[status] = worker.cause_of_death
    assert words == {
        0: "exit status 0",
        3: "exit status 3",
        -9: "killed by SIGKILL",
        -11: "killed by SIGSEGV",
        -40: "killed by signal 40",
    }


def test_terminated_workers_end_by_themselves(tmp_path: Path) -> None:
    pool = WorkerPool(act(), ())
    worker = pool.start(_assignment(tmp_path, 1))
    worker.connection.recv_bytes()
    pool.terminate()
    assert worker.wait(10)
    assert worker.status == 0
    pool.close(0.0)


def test_forking_is_for_processes_with_a_single_thread() -> None:
    wait_until(may_fork, 10, "threads of other tests are gone")
    with second_thread(True):
        assert not may_fork()
    wait_until(may_fork, 10, "the thread is gone")


def test_forked_workers_do_not_keep_what_is_not_theirs(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    pool = WorkerPool(act(), (writer,))
    worker = pool.start(_assignment(tmp_path, 1))
    worker.connection.recv_bytes()
    os.close(writer)
    assert os.read(reader, 1) == b""  # nobody else holds the writing end
    os.close(reader)
    pool.dismiss()
    pool.close(10.0)
