"""Tests of Ctrl-C, SIGTERM, SIGSTOP and killed parents, in every mode and state of the operator."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import RunStoppedError
from tests.execution.helpers import act, lines, node, plan, write_input
from tests.execution.helpers import run as run_here
from tests.faults.cases import paired
from tests.faults.crashing import HANG_SECONDS, Script, alive, alive_in_session, wait_until
from tests.faults.warm_starts import StartedProcess
from tests.nodes import FolderLock
from tests.subprocesses import killed_at_exit

pytestmark = pytest.mark.slow

_QUICK, _ALL = 40, 60

_CODE = """
KIND = os.environ["KIND"]

def wait():
    if KIND == "sleeps":
        time.sleep(3600)
    elif KIND == "computes":
        until = time.monotonic() + 3600
        while time.monotonic() < until:
            sum(range(1000))
    elif KIND == "holds the interpreter":
        re.match(r"(a+)+$", "a" * 40 + "b")
    elif KIND == "runs a program":
        import subprocess
        subprocess.run(["sleep", "3601"])
    elif KIND == "carries on":
        while True:
            try:
                time.sleep(3600)
            except BaseException:
                continue
    elif KIND == "catches all":
        try:
            time.sleep(3600)
        except BaseException:
            pass

def act(record):
    if record["n"] >= 40 and not (HOME / "at once").exists():
        log("pids.log", record["n"])
        wait()
    log("calls.log", record["n"])
    return {"n": record["n"]}

@data_register("data.interrupted", _max_workers=3, _drain_seconds=0)
def work(record):
    return act(record)

@data_register("data.interrupted", _max_workers=3, _drain_seconds=0)
async def work_async(record):
    if record["n"] >= 40 and KIND == "sleeps" and not (HOME / "at once").exists():
        log("pids.log", record["n"])
        await asyncio.sleep(3600)
        return None
    return act(record)

if __name__ == "__main__":
    mode = sys.argv[1]
    if mode == "spawned":  # a second thread forbids forking
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    if mode == "async":
        operator = data.interrupted.work_async()
    else:
        operator = data.interrupted.work(
            _concurrency_mode="process" if mode == "spawned" else mode
        )
    try:
        report = run(operator)
    except KeyboardInterrupt:
        log("interrupted.log")
        raise
    print("resumed", report.manifest.resumed)
"""


class _Run:
    """A run whose first forty records are quick, and whose workers are busy with further ones."""

    def __init__(self, folder: Path, mode: str, kind: str) -> None:
        write_input(folder / "input.jsonl", [{"n": n} for n in range(_ALL)])
        self.script = Script(folder, _CODE)
        self.mode = mode
        self.environment = os.environ | {"KIND": kind}

    @contextmanager
    def busy(self) -> Iterator[tuple[StartedProcess, set[int]]]:
        """Start the run; yield its process and the processes that work in the operator."""
        with killed_at_exit(self.script.start(self.mode, env=self.environment)) as process:
            self.script.wait_for("calls.log", _QUICK)
            self.script.wait_for("pids.log", 1)
            time.sleep(0.3)  # the others: how many get a slow record depends on their ranges
            yield process, {int(entry[0]) for entry in self.script.log("pids.log")}

    def finish(self) -> Counter[str]:
        """Make all records quick, run to the end, and return the number of calls per record."""
        (self.script.folder / "at once").touch()
        self.script.finish(self.mode, env=self.environment)
        result = (self.script.folder / "node" / "node_results.jsonl").read_bytes()
        assert result == lines({"n": n} for n in range(_ALL))
        assert not (self.script.folder / "node" / "node_error.jsonl").exists()
        return Counter(entry[1] for entry in self.script.log("calls.log"))


def _check_ends(run: _Run, process: StartedProcess, workers: set[int]) -> None:
    """Check that the run ends as interrupted Python does, without a remaining process."""
    wait_until(lambda: not alive(workers - {process.pid}), 2, "all workers are gone")
    assert process.wait(HANG_SECONDS) == -signal.SIGINT, run.script.output()
    wait_until(lambda: not alive_in_session(process.pid), 2, "nothing is left")
    assert [int(entry[0]) for entry in run.script.log("interrupted.log")] == [process.pid]
    FolderLock(run.script.folder / "node", "next", 0).release()


def _interrupt(process: StartedProcess, whom: str) -> None:
    """Send Ctrl-C to all processes, as a terminal does, or to the parent alone."""
    (os.killpg if whom == "all" else os.kill)(process.pid, signal.SIGINT)


_WITH_WORKERS = ("process", "spawned")


@pytest.mark.parametrize(
    ("mode", "kind", "whom"),
    [
        *((mode, kind, "all") for mode in _WITH_WORKERS for kind in ("computes", "catches all")),
        ("process", "sleeps", "all"),
        ("process", "holds the interpreter", "all"),
        ("process", "runs a program", "all"),
        *((mode, "sleeps", "parent") for mode in _WITH_WORKERS),
        *((mode, "holds the interpreter", "parent") for mode in _WITH_WORKERS),
        *((mode, "carries on", whom) for mode in _WITH_WORKERS for whom in ("all", "parent")),
        *((mode, kind, "all") for mode in ("thread", "async") for kind in ("sleeps", "carries on")),
        ("thread", "computes", "all"),
        ("single", "sleeps", "all"),
        ("single", "computes", "all"),
        ("single", "holds the interpreter", "all"),
    ],
)
def test_ctrl_c_ends_a_run_at_once_and_finished_records_are_kept(
    tmp_path: Path, mode: str, kind: str, whom: str
) -> None:
    run = _Run(tmp_path, mode, kind)
    with run.busy() as (process, workers):
        _interrupt(process, whom)
        _check_ends(run, process, workers)
    calls = run.finish()
    again = {record: times for record, times in calls.items() if times > 1}
    if kind == "catches all":  # its later result for the record does not count
        assert sum(again.values()) <= 2 * _QUICK
    elif kind != "carries on" or mode not in _WITH_WORKERS:  # where it is killed after its limit
        assert not again


@pytest.mark.parametrize(
    ("mode", "kind"), paired(_WITH_WORKERS, ["sleeps", "holds the interpreter", "carries on"])
)
def test_workers_end_with_a_killed_parent(tmp_path: Path, mode: str, kind: str) -> None:
    run = _Run(tmp_path, mode, kind)
    with run.busy() as (process, workers):
        process.kill()
        process.wait()
        wait_until(lambda: not alive(workers), 2, "all workers are gone")
    FolderLock(tmp_path / "node", "next", 0).release()


@pytest.mark.parametrize(("kind", "pause"), paired(["sleeps", "carries on"], [0.0, 0.3]))
def test_a_second_ctrl_c_leaves_no_worker_either(tmp_path: Path, kind: str, pause: float) -> None:
    run = _Run(tmp_path, "process", kind)
    with run.busy() as (process, workers):
        for _ in range(3):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
                time.sleep(pause)
        wait_until(lambda: not alive(workers), 2, "all workers are gone")
        assert process.wait(HANG_SECONDS) == -signal.SIGINT
        wait_until(lambda: not alive_in_session(process.pid), 2, "nothing is left")
    run.finish()


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_sigterm_ends_plain_python_and_its_workers(tmp_path: Path, mode: str) -> None:
    run = _Run(tmp_path, mode, "carries on")
    with run.busy() as (process, _):
        process.terminate()
        assert process.wait(HANG_SECONDS) == -signal.SIGTERM
        wait_until(lambda: not alive_in_session(process.pid), 2, "nothing is left")
    run.finish()


@pytest.mark.parametrize("mode", ["process", "spawned"])
def test_ctrl_c_at_any_time_of_the_start_ends_one_process_with_one_exception(
    tmp_path: Path, mode: str
) -> None:
    run = _Run(tmp_path, mode, "sleeps")
    for attempt in range(6):
        _interrupt_early(run, tmp_path, 0.01 * attempt**2)
        assert len(run.script.log("interrupted.log")) <= attempt + 1
    run.finish()


def _interrupt_early(run: _Run, folder: Path, seconds: float) -> None:
    lock = folder / "node" / ".lock"
    lock.unlink(missing_ok=True)
    with killed_at_exit(run.script.start(run.mode, env=run.environment)) as process:
        wait_until(lambda: lock.exists() or process.poll() is not None, 30, "its start")
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(HANG_SECONDS) in (-signal.SIGINT, 1), run.script.output()
        wait_until(lambda: not alive_in_session(process.pid), 2, "nothing is left")
    ended = [int(entry[0]) for entry in run.script.log("interrupted.log")]
    assert set(ended[-1:]) <= {process.pid}


@pytest.mark.parametrize("mode", ["process", "spawned"])
def test_a_terminated_worker_is_replaced_and_its_finished_records_are_settled(
    tmp_path: Path, mode: str
) -> None:
    run = _Run(tmp_path, mode, "sleeps")
    terminated: set[int] = set()
    with run.busy() as (process, _):
        (tmp_path / "at once").touch()

        def ended() -> bool:  # a worker that looked for this file a moment ago gets busy now
            for worker in {int(entry[0]) for entry in run.script.log("pids.log")} - terminated:
                os.kill(worker, signal.SIGTERM)
                terminated.add(worker)
            return process.poll() is not None

        wait_until(ended, 60, "the end of the run")
        assert process.returncode == 0, run.script.output()
    assert set(Counter(entry[1] for entry in run.script.log("calls.log")).values()) == {1}
    assert (tmp_path / "node" / "node_results.jsonl").read_bytes() == lines(
        {"n": n} for n in range(_ALL)
    )


_STEADY = """
@data_register("data.interrupted", _max_workers=3, _drain_seconds=0)
def steady(record):
    time.sleep(0.01)
    log("calls.log", record["n"])
    return {"n": record["n"]}

if __name__ == "__main__":
    run(data.interrupted.steady())
"""


def test_a_worker_that_is_stopped_for_a_while_changes_nothing(tmp_path: Path) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(200)])
    script = Script(tmp_path, _STEADY)
    with killed_at_exit(script.start()) as process:
        worker = int(script.wait_for("calls.log", 20)[-1][0])
        os.kill(worker, signal.SIGSTOP)
        time.sleep(0.8)
        assert process.poll() is None
        os.kill(worker, signal.SIGCONT)
        assert process.wait(HANG_SECONDS) == 0, script.output()
    calls = Counter(entry[1] for entry in script.log("calls.log"))
    assert set(calls.values()) == {1}
    result = (tmp_path / "node" / "node_results.jsonl").read_bytes()
    assert result == lines({"n": n} for n in range(200))


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=["interrupt", "kill"])
def test_stopped_workers_end_with_their_parent(tmp_path: Path, end: signal.Signals) -> None:
    run = _Run(tmp_path, "process", "sleeps")
    with run.busy() as (process, workers):
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        process.send_signal(end)
        assert process.wait(HANG_SECONDS) == -end
        wait_until(lambda: not alive_in_session(process.pid), 2, "nothing is left")
    run.finish()


def test_a_worker_that_is_interrupted_the_moment_it_is_forked_runs_nothing_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception that came out there would run the parent's handlers, and its script."""
    forked = os.fork

    def fork_and_interrupt() -> int:
        pid = forked()
        if not pid:
            os.kill(os.getpid(), signal.SIGINT)
        return pid

    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 30))
    myself = os.getpid()
    monkeypatch.setattr(os, "fork", fork_and_interrupt)
    try:
        run_here(act(_max_workers=2), dataset, node(tmp_path))
    finally:
        if os.getpid() != myself:
            (tmp_path / "a copy").touch()
            os._exit(1)
    monkeypatch.undo()
    assert not (tmp_path / "a copy").exists()
    assert node(tmp_path).result.read_bytes().count(b"\n") == 30


def test_calls_in_flight_after_an_interrupt_settle_nothing_more(tmp_path: Path) -> None:
    """Abandoned threads end by and by; nothing of them may reach files that are closed."""
    release, started = threading.Event(), threading.Semaphore(0)

    @data_register("data.interrupted", _concurrency_mode="thread", _max_workers=8, _drain_seconds=1)
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
    with pytest.raises(RunStoppedError, match="enough"):
        run_here(waits(), dataset, node(tmp_path), should_stop=stop)
    journal = node(tmp_path).checkpoints / "1" / "journal"
    settled = journal.stat().st_size
    release.set()
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert journal.stat().st_size == settled
