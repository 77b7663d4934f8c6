import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from dagster_dataops import RunReport
from dagster_dataops.data import data_register
from dagster_dataops.errors import RecordError, RunStoppedError
from tests.execution.engine import idle_workers, processes
from tests.execution.helpers import node, run, second_thread, write_input
from tests.faults.crashing import Script, alive, in_child, wait_until
from tests.nodes import background, deleting
from tests.subprocesses import killed_at_exit

_MODULE = """
import os
import threading
import time
from pathlib import Path

from dagster_dataops import data_register

HERE = Path(__file__).parent
with (HERE / "imports.log").open("a") as log:
    log.write(f"{os.getpid()}\\n")
seen = []


def helped():
    return 1


@data_register("data.kept", _concurrency_mode="process", _max_workers=1)
def tell(record, folder="", wait_for=0):
    seen.append(record["n"])
    if wait_for:
        (HERE / f"{folder}.{os.getpid()}").touch()
        until = time.monotonic() + 60
        while len(list(HERE.glob(f"{folder}.*"))) < wait_for and time.monotonic() < until:
            time.sleep(0.01)
    return {"n": record["n"], "worker": os.getpid(), "seen": len(seen), "helped": helped()}


@data_register("data.kept", _concurrency_mode="process", _max_workers=1)
def misbehave(record, how=""):
    match how:
        case "moves":
            os.chdir("/")
        case "masks":
            os.umask(0o077)
        case "fails":
            raise ValueError("no")
        case "kills itself":
            if not (HERE / "killed").exists():
                (HERE / "killed").touch()
                os.kill(os.getpid(), 9)
        case "terminates itself":
            if not (HERE / "terminated").exists():
                (HERE / "terminated").touch()
                os.kill(os.getpid(), 15)
                time.sleep(60)
    return {"worker": os.getpid()}
"""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a module of operators; forking is prevented, and no worker is left behind."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "kept_module.py").write_text(_MODULE)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "kept_module", raising=False)
    idle_workers.end()
    import kept_module  # type: ignore[import-not-found]

    (folder / "imports.log").unlink()  # the one of this process
    with second_thread(True):
        yield kept_module
    idle_workers.end()
    monkeypatch.delitem(sys.modules, "kept_module", raising=False)


def _run(tmp_path: Path, operator: Any, name: str = "node", count: int = 1, **how: Any) -> Any:
    dataset = write_input(tmp_path / f"{name}.jsonl", [{"n": n} for n in range(count)])
    return run(operator, dataset, node(tmp_path, name), run=os.urandom(4).hex(), **how)


def _workers(report: RunReport) -> set[int]:
    return {record["worker"] for record in report.dataset}


def _imports(tmp_path: Path) -> list[int]:
    return [int(pid) for pid in (tmp_path / "modules" / "imports.log").read_text().split()]


@pytest.mark.slow
def test_a_module_is_imported_once_per_worker_for_all_nodes(tmp_path: Path, kept: Any) -> None:
    reports = [_run(tmp_path, kept.tell(), f"node{number}") for number in range(8)]
    (worker,) = set.union(*map(_workers, reports))
    assert _imports(tmp_path) == [worker]
    # so its global variables are kept
    assert [record["seen"] for report in reports for record in report.dataset] == [*range(1, 9)]


@pytest.mark.slow
def test_two_workers_that_a_node_needed_serve_the_next_one(tmp_path: Path, kept: Any) -> None:
    def both(name: str) -> set[int]:
        operator = kept.tell(folder=name, wait_for=2, _max_workers=2)
        return _workers(_run(tmp_path, operator, name, count=2))

    first, second = both("first"), both("second")
    assert len(first) == 2
    assert second == first
    assert sorted(_imports(tmp_path)) == sorted(first)


@pytest.mark.slow
def test_a_reused_worker_receives_another_operator_and_options(tmp_path: Path, kept: Any) -> None:
    @data_register("data.kept_tests", _concurrency_mode="process", _max_workers=1)
    def other(record, add=0):
        return {"worker": os.getpid(), "sum": record["n"] + add}

    (first,) = _run(tmp_path, kept.tell()).dataset
    (second,) = _run(tmp_path, other(add=2)).dataset
    (third,) = _run(tmp_path, other(add=3)).dataset
    assert (second["sum"], third["sum"]) == (2, 3)
    assert first["worker"] == second["worker"] == third["worker"]


@pytest.mark.slow
def test_a_redefined_class_reaches_a_reused_worker(tmp_path: Path, kept: Any) -> None:
    def define(value: int) -> Any:
        group = data_register.new_group("kept_tests")

        class Redefined(group):
            def forward(self, record):
                return {"value": value, "worker": os.getpid()}

        return Redefined(_concurrency_mode="process", _max_workers=1)

    (first,) = _run(tmp_path, define(1)).dataset
    data_register.groups()
    (second,) = _run(tmp_path, define(2)).dataset
    assert (first["value"], second["value"]) == (1, 2)
    assert first["worker"] == second["worker"]


@pytest.mark.slow
def test_an_operator_can_request_fresh_workers_which_end_as_soon_as_its_run_is_over(
    tmp_path: Path, kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_GRACE_SECONDS", 60.0)
    shared = _workers(_run(tmp_path, kept.tell()))
    began = time.monotonic()
    own = _workers(_run(tmp_path, kept.tell(_fresh_workers=True)))
    again = _workers(_run(tmp_path, kept.tell(_fresh_workers=True)))
    assert len(shared | own | again) == 3
    assert time.monotonic() - began < 50
    assert not alive(own | again)
    assert _workers(_run(tmp_path, kept.tell())) == shared


@pytest.mark.slow
def test_a_worker_whose_module_was_edited_is_replaced(tmp_path: Path, kept: Any) -> None:
    before = _workers(_run(tmp_path, kept.tell()))
    module = tmp_path / "modules" / "kept_module.py"
    module.write_text(_MODULE.replace("return 1", "return 22"))
    (record,) = _run(tmp_path, kept.tell()).dataset
    assert record["helped"] == 22
    assert record["worker"] not in before
    assert not alive(before)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["variable", "folder", "path", "mask"])
def test_workers_with_another_environment_are_replaced(
    tmp_path: Path, kept: Any, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    before = _workers(_run(tmp_path, kept.tell()))
    mask = os.umask(0o022)
    try:
        match what:
            case "variable":
                monkeypatch.setenv("SURROUNDINGS", "other")
            case "folder":
                monkeypatch.chdir(tmp_path)
            case "path":
                monkeypatch.syspath_prepend(str(tmp_path))
            case "mask":
                os.umask(0o027)
        after = _workers(_run(tmp_path, kept.tell()))
    finally:
        os.umask(mask)
    assert not before & after
    assert not alive(before)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["moves", "masks", "terminates itself", "kills itself"])
def test_a_worker_in_an_unknown_state_is_not_reused(tmp_path: Path, kept: Any, how: str) -> None:
    doubtful = _workers(_run(tmp_path, kept.misbehave(how=how)))
    assert _imports(tmp_path)
    later = _workers(_run(tmp_path, kept.tell()))
    if how in {"moves", "masks"}:
        assert not alive(doubtful)
        assert not doubtful & later
    else:
        assert len(set(_imports(tmp_path))) == 2
        assert later == doubtful  # the one that came after it


@pytest.mark.slow
def test_workers_of_a_run_that_failed_or_was_stopped_are_not_kept(
    tmp_path: Path, kept: Any
) -> None:
    with pytest.raises(RecordError):
        _run(tmp_path, kept.misbehave(how="fails", _ignore_errors=False))
    with pytest.raises(RunStoppedError):
        _run(tmp_path, kept.tell(folder="x", wait_for=9), should_stop=lambda: "maintenance")
    assert not idle_workers.pids
    assert not alive(_imports(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_idle_worker_that_has_ended_is_replaced(
    tmp_path: Path, kept: Any, number: signal.Signals
) -> None:
    (ended,) = _workers(_run(tmp_path, kept.tell()))
    os.kill(ended, number)
    wait_until(lambda: not alive([ended]), 30, "its end")
    assert _workers(_run(tmp_path, kept.tell())) != {ended}


@pytest.mark.slow
def test_an_idle_worker_that_dies_as_it_is_taken_is_replaced(tmp_path: Path, kept: Any) -> None:
    (stopped,) = _workers(_run(tmp_path, kept.tell()))
    os.kill(stopped, signal.SIGSTOP)
    threading.Timer(0.2, os.kill, (stopped, signal.SIGKILL)).start()
    assert _workers(_run(tmp_path, kept.tell())) != {stopped}


@pytest.mark.slow
def test_an_idle_worker_holds_no_lock_no_input_and_no_segment(tmp_path: Path, kept: Any) -> None:
    operator = kept.tell(_timeout=100)
    (worker,) = _workers(_run(tmp_path, operator, count=50))
    opened = {str(path.readlink()) for path in Path(f"/proc/{worker}/fd").iterdir()}
    files = {name for name in opened if name.startswith("/")}
    assert files <= {"/dev/null", *(name for name in files if name.startswith("/proc/"))}
    assert not [name for name in opened if "heartbeat" in name]
    numbers = len(opened)
    for _ in range(3):
        assert _workers(_run(tmp_path, operator, count=50)) == {worker}
    assert len({str(path.readlink()) for path in Path(f"/proc/{worker}/fd").iterdir()}) == numbers


@pytest.mark.slow
def test_reused_workers_leave_no_open_descriptors_in_the_parent(tmp_path: Path, kept: Any) -> None:
    counts = []
    for _ in range(4):
        _run(tmp_path, kept.tell(_timeout=100))
        background.finish()
        deleting.finish()  # which holds files open until they are gone
        counts.append(len(list(Path("/proc/self/fd").iterdir())))
    assert counts[1] == counts[-1]  # the first run leaves a worker that is there from then on


@pytest.mark.slow
def test_runs_in_two_threads_have_separate_workers(tmp_path: Path, kept: Any) -> None:
    def work(name: str) -> set[int]:
        return _workers(_run(tmp_path, kept.tell(folder="both", wait_for=2), name))

    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(work, ["one", "other"])
    assert not one & other
    assert set(idle_workers.pids) == one | other


@pytest.mark.slow
def test_a_forked_child_has_no_idle_worker_of_its_parent(tmp_path: Path, kept: Any) -> None:
    (worker,) = _workers(_run(tmp_path, kept.tell()))
    before = len(list(Path("/proc/self/fd").iterdir()))

    def has_none() -> None:
        assert not idle_workers
        assert len(list(Path("/proc/self/fd").iterdir())) < before
        idle_workers.end()

    assert in_child(has_none) == 0
    assert _workers(_run(tmp_path, kept.tell())) == {worker}


_ENDS = """
@data_register("data.ends", _concurrency_mode="process", _max_workers=1)
def same(record):
    log("worker.log")

if __name__ == "__main__":
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    run(data.ends.same())
    if sys.argv[1] == "forks":
        child = os.fork()
        if not child:
            log("child.log")
            time.sleep(600)
    if sys.argv[1] != "exits":
        log("done.log")
        time.sleep(600)
    os._exit(0) if sys.argv[1] == "hard exit" else None
    log("exits.log")
"""


def _ending(tmp_path: Path) -> Script:
    write_input(tmp_path / "input.jsonl", [{"n": 1}])
    return Script(tmp_path, _ENDS)


@pytest.mark.parametrize("how", ["waits", "forks"])
def test_idle_workers_end_with_a_killed_parent_even_if_a_child_of_that_lives_on(
    tmp_path: Path, how: str
) -> None:
    script = _ending(tmp_path)
    with killed_at_exit(script.start(how)) as process:
        script.wait_for("done.log", 1)
        if how == "forks":
            script.wait_for("child.log", 1)
        workers = [int(entry[0]) for entry in script.log("worker.log")]
        assert alive(workers)
        process.kill()
        process.wait()
        wait_until(lambda: not alive(workers), 30, "the workers are gone")


def test_idle_workers_end_with_their_parents_exit(tmp_path: Path) -> None:
    script = _ending(tmp_path)
    script.finish("exits")
    assert not alive([int(entry[0]) for entry in script.log("worker.log")])


@pytest.mark.slow
def test_an_idle_worker_ends_after_a_while(tmp_path: Path) -> None:
    from tests.execution.engine import worker_main

    assert 10_000 <= worker_main._IDLE_MS <= 600_000
    code = "from dagster_dataops.execution.workers import worker_main\nworker_main._IDLE_MS = 100\n"
    script = _ending(tmp_path)
    (tmp_path / "sitecustomize.py").write_text(code)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    with killed_at_exit(script.start("waits", env={**os.environ, "PYTHONPATH": path})):
        script.wait_for("done.log", 1)
        workers = [int(entry[0]) for entry in script.log("worker.log")]
        wait_until(lambda: not alive(workers), 60, "the workers are gone")


@pytest.mark.slow
def test_memory_of_an_operator_is_given_back_before_the_worker_is_idle_for_long(
    tmp_path: Path, kept: Any
) -> None:
    size = 200 << 20

    @data_register("data.kept_tests", _concurrency_mode="process", _max_workers=1)
    def holds_much(record, table=None):
        table["itself"] = table  # a circle, which only the garbage collector breaks
        table["bytes"] = bytes(bytearray(size))
        return {"worker": os.getpid()}

    (worker,) = _workers(_run(tmp_path, holds_much(table={})))
    process = psutil.Process(worker)
    wait_until(lambda: process.memory_info().rss < size, 60, "it is given back")


@pytest.mark.slow
def test_a_worker_writes_where_its_parent_writes_now_and_nowhere_while_idle(
    tmp_path: Path, kept: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    @data_register("data.kept_tests", _concurrency_mode="process", _max_workers=1)
    def speak(record, text=""):
        sys.stdout.write(f"{text}\n")
        return {"worker": os.getpid()}

    (worker,) = _workers(_run(tmp_path, speak(text="first")))
    assert capfd.readouterr().out == "first\n"
    with _output_to(tmp_path / "second.txt"):
        assert _workers(_run(tmp_path, speak(text="second"))) == {worker}
    assert (tmp_path / "second.txt").read_text() == "second\n"
    assert [str(Path(f"/proc/{worker}/fd/{n}").readlink()) for n in (1, 2)] == ["/dev/null"] * 2


class _output_to:  # noqa: N801 - reads as a function
    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        self._kept = os.dup(1)
        with self._path.open("w") as file:
            os.dup2(file.fileno(), 1)

    def __exit__(self, *_: object) -> None:
        os.dup2(self._kept, 1)
        os.close(self._kept)
