"""Tests that no process remains when a parent dies or is interrupted."""

import os
import signal
import threading
from pathlib import Path

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import FolderLockedError
from tests.execution.helpers import lines, node, run, write_input
from tests.faults.crashing import HANG_SECONDS, Script, alive, wait_until
from tests.nodes import FolderLock
from tests.subprocesses import killed_at_exit

pytestmark = pytest.mark.slow

_BUSY = """
@data_register("data.busy", _max_workers=4)
def sleeps(record):
    log("pids.log")
    time.sleep(3600)

@data_register("data.busy", _max_workers=4)
def holds_the_interpreter(record):
    log("pids.log")
    re.match(r"(a+)+$", "a" * 40 + "b")

@data_register("data.busy", _max_workers=4)
def ignores_signals(record):
    log("pids.log")
    while True:
        try:
            time.sleep(3600)
        except BaseException:
            continue

if sys.argv[2] == "spawned":
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
try:
    run(getattr(data.busy, sys.argv[1])())
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""


def _busy_workers(tmp_path: Path) -> Script:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(40)])
    return Script(tmp_path, _BUSY)


@pytest.mark.parametrize("how", ["forked", "spawned"])
@pytest.mark.parametrize("operator", ["sleeps", "holds_the_interpreter", "ignores_signals"])
def test_workers_end_with_a_killed_parent(tmp_path: Path, operator: str, how: str) -> None:
    script = _busy_workers(tmp_path)
    with killed_at_exit(script.start(operator, how)) as process:
        pids = [int(entry[0]) for entry in script.wait_for("pids.log", 4)]
        assert len(alive(pids)) == 4
        process.kill()
        process.wait()
        wait_until(lambda: not alive(pids), 2, "all workers are gone")
    FolderLock(tmp_path / "node", "next", 0).release()


@pytest.mark.parametrize("how", ["forked", "spawned"])
@pytest.mark.parametrize("operator", ["sleeps", "holds_the_interpreter", "ignores_signals"])
def test_workers_end_with_an_interrupted_parent(tmp_path: Path, operator: str, how: str) -> None:
    script = _busy_workers(tmp_path)
    with killed_at_exit(script.start(operator, how)) as process:
        pids = [int(entry[0]) for entry in script.wait_for("pids.log", 4)]
        process.send_signal(signal.SIGINT)
        wait_until(lambda: not alive(pids), 2, "all workers are gone")
        assert process.wait(HANG_SECONDS) == -signal.SIGINT
    assert "interrupted" in script.output()
    FolderLock(tmp_path / "node", "next", 0).release()


_HALF = """
@data_register("data.half", _max_workers=64, _drain_seconds=1)
def half(record):
    if record["n"] % 2:
        log("waiting.log")
        time.sleep(3600)
    log("calls.log", record["n"])
    return {"n": record["n"]}

@data_register("data.half", _max_workers=64, _drain_seconds=1)
async def half_async(record):
    if record["n"] % 2:
        log("waiting.log")
        await asyncio.sleep(3600)
    log("calls.log", record["n"])
    return {"n": record["n"]}

mode = sys.argv[1]
operator = data.half.half_async() if mode == "async" else data.half.half(_concurrency_mode=mode)
run(operator)
"""


@pytest.mark.parametrize("mode", ["thread", "async"])
def test_an_interrupt_ends_the_run_at_once_and_keeps_finished_records(
    tmp_path: Path, mode: str
) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(128)])
    script = Script(tmp_path, _HALF)
    with killed_at_exit(script.start(mode)) as process:
        script.wait_for("waiting.log", 64)
        finished = len(script.log("calls.log"))
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_SECONDS) == -signal.SIGINT
    assert "KeyboardInterrupt" in script.output()
    with killed_at_exit(script.start(mode)):
        script.wait_for("waiting.log", 128)
        assert len(script.log("calls.log")) == finished


def test_an_interrupt_keeps_records_finished_by_process_workers(tmp_path: Path) -> None:
    write_input(tmp_path / "input.jsonl", [*({"n": 2 * n} for n in range(30)), {"n": 1}])
    code = _HALF.replace("_max_workers=64", "_max_workers=2")
    script = Script(
        tmp_path, code.replace('    log("calls', '    time.sleep(0.03)\n    log("calls')
    )
    with killed_at_exit(script.start("process")) as process:
        script.wait_for("waiting.log", 1)
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_SECONDS) == -signal.SIGINT
    with killed_at_exit(script.start("process")):
        script.wait_for("waiting.log", 2)
        # The other worker may still be busy with calls in flight.
        wait_until(lambda: len({e[1] for e in script.log("calls.log")}) == 30, 20, "all calls")
    calls = script.log("calls.log")
    assert len(calls) <= 30 + 2  # the calls in flight


def test_an_interrupt_of_the_whole_group_is_the_parents_to_handle(tmp_path: Path) -> None:
    """A terminal sends the signal to the whole group on Ctrl-C."""
    script = _busy_workers(tmp_path)
    with killed_at_exit(script.start("sleeps", "forked")) as process:
        pids = [int(entry[0]) for entry in script.wait_for("pids.log", 4)]
        os.killpg(process.pid, signal.SIGINT)
        wait_until(lambda: not alive(pids), 2, "all workers are gone")
        assert process.wait(HANG_SECONDS) == -signal.SIGINT
    assert script.output().count("Traceback") == 1


def test_a_second_run_is_refused_until_the_first_is_dead(tmp_path: Path) -> None:
    import socket

    script = _busy_workers(tmp_path)

    @data_register("data.busy", _concurrency_mode="single")
    def quick(record):
        return record

    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}])
    with killed_at_exit(script.start("sleeps", "forked")) as process:
        script.wait_for("pids.log", 1)
        with pytest.raises(FolderLockedError) as caught:
            run(quick(), dataset, node(tmp_path), lock_seconds=0.1)
        for part in (socket.gethostname(), f"process {process.pid}", "run script"):
            assert part in str(caught.value)
        process.kill()
        process.wait()
        # A worker that was just being forked lets go in a moment.
        run(quick(), dataset, node(tmp_path), lock_seconds=HANG_SECONDS)
    assert node(tmp_path).result.read_bytes() == lines([{"n": 1}])


def test_a_run_waits_for_a_dying_one(tmp_path: Path) -> None:
    @data_register("data.busy", _concurrency_mode="single")
    def patient(record):
        return record

    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}])
    lock = FolderLock(tmp_path / "node", "dying", 0)
    timer = threading.Timer(0.3, lock.release)
    timer.start()
    run(patient(), dataset, node(tmp_path), lock_seconds=HANG_SECONDS)
    timer.join()
    assert node(tmp_path).result.exists()


def test_calls_in_flight_after_an_interrupt_settle_nothing_more(tmp_path: Path) -> None:
    """Abandoned threads end by and by; nothing of them may reach files that are closed."""
    release, started = threading.Event(), threading.Semaphore(0)

    @data_register("data.busy", _concurrency_mode="thread", _max_workers=8, _drain_seconds=1)
    def waits(record):
        started.release()
        release.wait(HANG_SECONDS)
        return record

    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(50)])

    def stop() -> str | None:
        for _ in range(8):
            started.acquire()
        return "enough"

    before = set(threading.enumerate())
    from dagster_dataops.errors import RunStoppedError

    with pytest.raises(RunStoppedError, match="enough"):
        run(waits(), dataset, node(tmp_path), should_stop=stop)
    journal = node(tmp_path).checkpoints / "1" / "journal"
    settled = journal.stat().st_size
    release.set()
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert journal.stat().st_size == settled
