"""Tests that workers which are killed or suspended change nothing."""

import gc
import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest

from dagster_dataops import DataPipeline, read_jsonl
from dagster_dataops.errors import StreamWorkerError
from tests.finalized import garbage_of_this_process
from tests.streams.sequences import numbers
from tests.streams.sharding.killing import read_while_disturbed, workers
from tests.streams.sharding.processes import shard_process


def slow(record):
    time.sleep(0.0005)
    return {**record, "doubled": 2 * record["n"]}


def wanted(record):
    if record["n"] % 11 == 4:
        raise ValueError(record["n"])
    return record["n"] % 3 != 1


@pytest.fixture
def damaged(tmp_path):
    """A file of records with lines that are no records."""
    path = tmp_path / "damaged.jsonl"
    path.write_text("".join(f'{{"n":{n}}}\n' if n % 13 else "{torn\n" for n in range(150)))
    return path


def collecting(record):
    gc.collect()
    return record


@pytest.mark.slow
def test_workers_do_not_finalize_the_garbage_of_their_parent(tmp_path):
    with garbage_of_this_process(tmp_path / "finalized"):
        stream = numbers(*range(20)).sharding_filter().map(collecting).workers(2)
        assert len(list(stream)) == 20


@pytest.mark.slow
@pytest.mark.parametrize("suspended", [False, True], ids=["killed", "killed or suspended"])
@pytest.mark.parametrize("mark", ["sharding_filter", "sharding_round_robin_dispatch"])
def test_items_and_states_are_the_same_while_workers_die(damaged, mark, suspended):
    def made(count):
        marked = getattr(read_jsonl(damaged, block_size=1024).shuffle(40), mark)()
        return marked.map(slow).filter(wanted).workers(count).and_return(on_error="skip")

    alone = made(0)
    expected = [(item, alone.state_dict()["position"]) for item in alone]
    disturbed = made(3)
    found, count = read_while_disturbed(disturbed, 5, 0.1, suspended)
    assert count > 3
    assert [(item, state["position"]) for item, state in found] == expected
    assert disturbed.errors == alone.errors
    assert disturbed.state_dict() == alone.state_dict()


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["sharding_filter", "sharding_round_robin_dispatch"])
def test_failed_items_are_stored_once_while_workers_die(damaged, mark):
    def made(count):
        marked = getattr(read_jsonl(damaged), mark)().map(slow).filter(wanted)
        return marked.workers(count).and_return(on_error="quarantine")

    alone, disturbed = made(0), made(2)
    list(alone)
    read_while_disturbed(disturbed, 2, 0.1)
    assert sorted(map(str, disturbed.quarantined)) == sorted(map(str, alone.quarantined))


def test_a_reader_that_is_killed_leaves_no_workers():
    code = (
        "import sys\n"
        "from dagster_dataops import DataPipeline\n"
        "from tests.streams.sharding.killing import workers\n"
        "stream = iter(DataPipeline.count().map(abs).workers(2))\n"
        "next(stream)\n"
        "print(*workers(), flush=True)\n"
        "sys.stdin.read()\n"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with program:
        started = [int(one) for one in program.stdout.readline().split()]
        program.kill()
    assert len(started) == 2
    until = time.monotonic() + 30
    while any(map(is_running, started)):
        assert time.monotonic() < until
        time.sleep(0.01)


def is_running(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_workers_that_die_at_their_start_are_reported(monkeypatch):
    monkeypatch.setattr(shard_process, "serve", lambda start, ends, inherited: os._exit(4))
    with pytest.raises(StreamWorkerError, match="3 worker processes .* at their start.*code 4"):
        list(numbers(1, 2).map(abs).workers(2))


@pytest.mark.slow
def test_a_worker_that_dies_while_idle_is_replaced():
    stream = iter(DataPipeline.count().map(abs).workers(2))
    assert next(stream) == 0
    for worker in workers():
        os.kill(worker, signal.SIGKILL)
    assert list(islice(stream, 300)) == list(range(1, 301))


def test_a_fork_leaves_the_workers_of_its_parent_alone():
    stream = iter(DataPipeline.count().map(abs).workers(2))
    assert next(stream) == 0
    alive = workers()
    child = os.fork()
    if not child:
        stream.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert workers() == alive
    assert next(stream) == 1
