import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.execution.engine import Assignment, Kind, WorkerPool, WorkerProcess, idle_workers
from tests.execution.helpers import act, plan, second_thread, write_input
from tests.faults.crashing import alive


def _assignment(tmp_path: Path, segment: int) -> Assignment:
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 3))
    return Assignment(str(dataset.path), dataset.stamp(), str(tmp_path), segment, True, 99)


@pytest.mark.parametrize("spawned", [False, True], ids=["forked", "spawned"])
def test_workers_start_and_end_on_demand(tmp_path: Path, spawned: bool) -> None:
    pool = WorkerPool(act(), ())
    with second_thread(spawned):
        first = _assignment(tmp_path, 1)
        workers = [pool.start(first), pool.start(replace(first, segment=2))]
    pids = [worker.pid for worker in workers]
    assert [worker.connection.recv_bytes()[0] for worker in workers] == [Kind.READY] * 2
    pool.stop()
    pool.close(10.0)
    assert pool.workers == []
    if spawned:
        assert set(pids) <= set(idle_workers.pids)
        idle_workers.end()
    else:
        assert [worker.status for worker in workers] == [0, 0]
    assert not alive(pids)


@pytest.mark.parametrize("spawned", [False, True], ids=["forked", "spawned"])
def test_the_cause_of_a_workers_death_is_reported_in_words(tmp_path: Path, spawned: bool) -> None:
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


def test_every_cause_of_death_has_a_text() -> None:
    worker = WorkerProcess(0, None, 1)  # type: ignore[arg-type]
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


def test_forked_workers_close_descriptors_of_the_parent(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    pool = WorkerPool(act(), (writer,))
    worker = pool.start(_assignment(tmp_path, 1))
    worker.connection.recv_bytes()
    os.close(writer)
    assert os.read(reader, 1) == b""  # no other process holds the writing end
    os.close(reader)
    pool.stop()
    pool.close(10.0)
