"""Tests of one record that breaks its environment: only this record is in the error file.

If a mode cannot survive (``os._exit`` in a thread ends the whole process), the next attempt resumes
where the process died.
"""

import asyncio
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dagster_dataops.data import data_register
from tests.execution.helpers import (
    MODES,
    error_rows,
    lines,
    node,
    run,
    run_over,
    second_thread,
    write_input,
)
from tests.faults.cases import paired
from tests.faults.crashing import HANG_SECONDS, Script, alive, children_of, wait_until
from tests.nodes import ResumePolicy
from tests.subprocesses import killed_at_exit

pytestmark = pytest.mark.slow

_GROUP = "data.poison"
_COUNT, _POISONED = 40, 23


# -- the actions of a poisoned record


def segfault() -> None:
    ctypes.string_at(0)


def exit_at_once() -> None:
    os._exit(3)


def killed_for_memory() -> None:
    """End this process as the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def close_every_descriptor() -> None:
    os.closerange(3, 4096)


def overflow_the_stack() -> None:
    sys.setrecursionlimit(10**9)
    recurse = eval("lambda f: f(f)")  # noqa: S307 - not to be told by a type checker
    list(map(recurse, [lambda f: sorted([1], key=lambda _: f(f))]))


def system_exit() -> None:
    sys.exit("leaving")


def run_out_of_memory() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    used = psutil.Process().memory_info().vms
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), most))
    bytearray(1 << 30)


def recurse_forever() -> None:
    recurse_forever()


class _UnpicklableError(Exception):
    def __init__(self) -> None:
        super().__init__("cannot be sent", lambda: None)

    def __reduce__(self) -> Any:
        raise TypeError("no pickling")


class _MuteError(Exception):
    def __str__(self) -> str:
        raise SystemExit("no text")


class _OddError(BaseException):
    """Derived from a class that user code should not derive from."""


def _raising(error: Callable[[], BaseException]) -> Callable[[], None]:
    def raises() -> None:
        raise error()

    return raises


KILLERS = {
    function.__name__: function
    for function in (
        segfault,
        exit_at_once,
        killed_for_memory,
        close_every_descriptor,
        overflow_the_stack,
    )
}
RAISERS: dict[str, tuple[str, Callable[[], None]]] = {
    "sys.exit": ("SystemExit", system_exit),
    "recursion": ("RecursionError", recurse_forever),
    "unpicklable": ("_UnpicklableError", _raising(_UnpicklableError)),
    "mute": ("_MuteError", _raising(_MuteError)),
    "KeyboardInterrupt": ("KeyboardInterrupt", _raising(KeyboardInterrupt)),
    "GeneratorExit": ("GeneratorExit", _raising(GeneratorExit)),
    "StopIteration": ("StopIteration", _raising(StopIteration)),
    "base": ("_OddError", _raising(_OddError)),
}


def change_folder() -> None:
    os.chdir("/")


def ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)


def lower_the_recursion_limit() -> None:
    depth = 1
    while True:
        try:
            sys.setrecursionlimit(depth + 8)
        except RecursionError:
            depth += 1
        else:
            return


def replace_the_streams() -> None:
    sys.stdout.close()
    sys.stderr.close()
    sys.stdout = sys.stderr = None  # type: ignore[assignment]


def start_threads() -> None:
    for _ in range(3):
        threading.Thread(target=time.sleep, args=(600,), daemon=False).start()


def leave_an_exiting_child() -> None:
    if not os.fork():
        os._exit(5)


RUDE = {
    function.__name__: function
    for function in (
        change_folder,
        ignore_signals,
        lower_the_recursion_limit,
        replace_the_streams,
        start_threads,
        leave_an_exiting_child,
    )
}

_DEEDS: dict[str, Callable[[], None]] = {
    **KILLERS,
    **RUDE,
    **{name: function for name, (_, function) in RAISERS.items()},
    "memory": run_out_of_memory,
}


@data_register(_GROUP, _max_workers=2)
def drink(record, what=""):
    if record["poison"]:
        _DEEDS[what or record["what"]]()
        record["survived"] = True
    return record


@data_register(_GROUP, _max_workers=2)
async def drink_async(record, what=""):
    await asyncio.sleep(0)
    if record["poison"]:
        _DEEDS[what or record["what"]]()
        record["survived"] = True
    return record


def _operator(mode: str, what: str, **given: Any) -> Any:
    chosen = drink_async if mode == "async" else drink
    return chosen(what=what, _concurrency_mode=mode, **given)


def _records(*poisoned: int, count: int = _COUNT) -> list[dict[str, Any]]:
    return [{"n": n, "poison": n in poisoned} for n in range(count)]


def _assert_only_the_poison_failed(tmp_path: Path, exception: str, operator: str = "drink") -> None:
    records = _records(_POISONED)
    well = [record for record in records if not record["poison"]]
    assert node(tmp_path).result.read_bytes() == lines(well)
    (row,) = error_rows(node(tmp_path))
    assert (row["index"], row["line"]) == (_POISONED, _POISONED + 1)
    assert row["exception"] == exception
    assert row["operator"] == f"poison.{operator}"
    assert row["path"] == str(tmp_path / "input.jsonl")
    assert row["message"] is not None
    assert row["input"] == records[_POISONED]


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    before = set(children_of(os.getpid()))
    yield
    after = set(children_of(os.getpid()))
    wait_until(lambda: not alive(after - before), 5, f"processes {after - before} are gone")


# -- process mode: only the worker is affected


@pytest.mark.parametrize(
    ("what", "how"),
    [
        *((what, "forked") for what in KILLERS),
        *((what, "spawned") for what in ("segfault", "exit_at_once", "killed_for_memory")),
    ],
)
def test_only_the_record_that_kills_its_process_is_in_the_error_file(
    tmp_path: Path, what: str, how: str
) -> None:
    with second_thread(how == "spawned"):
        run_over(tmp_path, _operator("process", what), _records(_POISONED))
    _assert_only_the_poison_failed(tmp_path, "WorkerDied")


def test_a_worker_out_of_memory_fails_the_record(tmp_path: Path) -> None:
    run_over(tmp_path, _operator("process", "memory"), _records(_POISONED))
    # It lowers the limit itself, so its worker is replaced.
    _assert_only_the_poison_failed(tmp_path, "WorkerDied")
    (row,) = error_rows(node(tmp_path))
    assert "a call lowered RLIMIT_AS" in row["message"]


@pytest.mark.parametrize("what", RUDE)
def test_disturbances_in_a_worker_process_cost_no_record(tmp_path: Path, what: str) -> None:
    records = _records(_POISONED)
    run_over(tmp_path, _operator("process", what), records)
    records[_POISONED]["survived"] = True
    assert node(tmp_path).result.read_bytes() == lines(records)
    assert not error_rows(node(tmp_path))


# -- every mode: exceptions of all kinds


@pytest.mark.parametrize(("mode", "limited"), paired(MODES, [False, True]))
@pytest.mark.timeout(method="thread")
def test_any_exception_fails_only_its_record(tmp_path: Path, mode: str, limited: bool) -> None:
    expected = {what: exception for what, (exception, _) in RAISERS.items()}
    if mode == "single":
        del expected["KeyboardInterrupt"]  # in the main thread that is Ctrl-C, which ends the run
    if mode == "async":
        expected["StopIteration"] = "RuntimeError"  # the form that Python gives it in a coroutine
    records = [{"n": n, "poison": False, "what": what} for n, what in enumerate([*expected] * 6)]
    for record in records[2 * len(expected) : 3 * len(expected)]:
        record["poison"] = True
    settings = {"_timeout": 30} if limited else {}
    run_over(tmp_path, _operator(mode, "", **settings), records)
    well = [record for record in records if not record["poison"]]
    assert node(tmp_path).result.read_bytes() == lines(well)
    found = [(row["input"]["what"], row["exception"]) for row in error_rows(node(tmp_path))]
    assert found == list(expected.items())


def test_ctrl_c_in_single_mode_ends_the_run_and_the_next_one_resumes(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", _records(_POISONED))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(
                _operator("single", "KeyboardInterrupt"),
                dataset,
                node(tmp_path),
                resume=ResumePolicy.AUTO,
            )
    assert not node(tmp_path).result.exists()


# -- hanging


_RELEASE = threading.Event()


@data_register(_GROUP, _max_workers=2)
def hang(record):
    if record["poison"]:
        _RELEASE.wait(HANG_SECONDS)
    return record


@data_register(_GROUP, _max_workers=2)
def hold_the_interpreter(record):
    """Hangs in C code that lets no other thread run, as a bad regular expression does."""
    if record["poison"]:
        ctypes.PyDLL(None).sleep(3600)
    return record


@data_register(_GROUP, _max_workers=2)
async def hang_async(record):
    if record["poison"]:
        await asyncio.sleep(3600)
    return record


def _after(seconds: float) -> Callable[[], str | None]:
    until = time.monotonic() + seconds
    return lambda: "it hangs" if time.monotonic() > until else None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.timeout(method="thread")
def test_only_the_hanging_record_fails(tmp_path: Path, mode: str) -> None:
    operator = hang_async if mode == "async" else hang
    _RELEASE.clear()
    try:
        run_over(
            tmp_path,
            operator(_timeout=1.5, _concurrency_mode=mode),
            _records(_POISONED),
            should_stop=_after(HANG_SECONDS),
        )
    finally:
        _RELEASE.set()
    _assert_only_the_poison_failed(tmp_path, "RecordTimeout", operator.operator.__name__)


def test_only_the_record_that_blocks_the_interpreter_fails_in_process_mode(tmp_path: Path) -> None:
    late = _after(HANG_SECONDS)
    run_over(tmp_path, hold_the_interpreter(_timeout=1.5), _records(_POISONED), should_stop=late)
    _assert_only_the_poison_failed(tmp_path, "RecordTimeout", "hold_the_interpreter")


# -- forking


_FORKS = """
@data_register("data.forks", _max_workers=2)
def fork(record, what=""):
    log("calls.log", record["n"])
    if record["n"] == 23:
        child = os.fork()
        if not child and what == "returns":
            log("children.log")
            return {"n": "child"}
        if not child and what == "exits":
            log("children.log")
            sys.exit()
        if not child:
            log("children.log")
            time.sleep(3600)
        if what == "stays and its parent dies":
            while not (HOME / "children.log").exists():
                time.sleep(0.01)
            os._exit(3)
        if what != "stays":
            os.waitpid(child, 0)
    return record

@data_register("data.forks", _max_workers=2)
async def fork_async(record, what=""):
    return fork.function(record, what)

mode, what = sys.argv[1:]
chosen = data.forks.fork_async if mode == "async" else data.forks.fork
run(chosen(what=what, _concurrency_mode=mode))
log("ended.log")
"""


_FORK_COUNT = 1500  # enough for a thread to settle the main thread's records


def _forking(tmp_path: Path, mode: str, what: str) -> Script:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(_FORK_COUNT)])
    script = Script(tmp_path, _FORKS)
    with killed_at_exit(script.start(mode, what)) as process:
        assert process.wait(HANG_SECONDS) == 0, script.output()
    return script


@pytest.mark.parametrize(("mode", "what"), paired(MODES, ["returns", "exits"]))
def test_a_forked_child_that_comes_back_from_its_call_settles_nothing(
    tmp_path: Path, mode: str, what: str
) -> None:
    script = _forking(tmp_path, mode, what)
    assert node(tmp_path).result.read_bytes() == lines({"n": n} for n in range(_FORK_COUNT))
    assert not error_rows(node(tmp_path))
    assert len(script.log("ended.log")) == 1
    assert len(script.log("children.log")) == 1
    assert not alive([int(entry[0]) for entry in script.log("children.log")])
    assert "returned from the operator's call" in script.output()
    if mode in {"thread", "async"}:  # the others notice it when the stretch of records ends
        assert len(script.log("calls.log")) == _FORK_COUNT


@pytest.mark.parametrize("mode", MODES)
def test_a_remaining_child_does_not_delay_the_run(tmp_path: Path, mode: str) -> None:
    _forking(tmp_path, mode, "stays")
    assert node(tmp_path).result.read_bytes() == lines({"n": n} for n in range(_FORK_COUNT))


def test_a_dead_worker_is_detected_although_its_child_holds_its_pipes(tmp_path: Path) -> None:
    _forking(tmp_path, "process", "stays and its parent dies")
    (row,) = error_rows(node(tmp_path))
    assert (row["index"], row["exception"]) == (_POISONED, "WorkerDied")
    well = [{"n": n} for n in range(_FORK_COUNT) if n != _POISONED]
    assert node(tmp_path).result.read_bytes() == lines(well)


# -- too much of it


@data_register(_GROUP, _max_workers=2)
def swell(record):
    if record["poison"]:
        record["text"] = "x" * (200 << 20)
    return record


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_an_enormous_result_is_published(tmp_path: Path, mode: str) -> None:
    run_over(tmp_path, swell(_concurrency_mode=mode), _records(1, count=3))
    with node(tmp_path).result.open("rb") as file:
        sizes = [len(line) for line in file]
    assert len(sizes) == 3
    assert sizes[1] > 200 << 20
    assert not error_rows(node(tmp_path))
    node(tmp_path).result.unlink()


_PRINTS = """
@data_register("data.prints", _max_workers=2)
def talk(record):
    if record["n"] % 20 == 3:
        for _ in range(10):
            print("x" * (1 << 20))
    return record

run(talk(_concurrency_mode=sys.argv[1]))
print("the end", flush=True)
"""


@pytest.mark.parametrize(
    ("mode", "reader"), paired(["process", "thread", "single"], ["file", "slow pipe"])
)
def test_an_operator_that_prints_without_end_is_ended(
    tmp_path: Path, mode: str, reader: str
) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(_COUNT)])
    script = Script(tmp_path, _PRINTS)
    if reader == "file":
        assert script.finish(mode).count("x" * (1 << 20)) == 20
    else:
        command = [sys.executable, str(script.path), mode]
        with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
            assert process.stdout is not None
            size = 0
            while block := process.stdout.read1(8 << 20):
                size += len(block)
                time.sleep(0.0002)
        assert process.returncode == 0
        assert size > 20 << 20
    assert node(tmp_path).result.read_bytes() == lines({"n": n} for n in range(_COUNT))


# -- actions that a mode cannot survive


_DIES = """
@data_register("data.dies", _max_workers=2)
def dies_once(record):
    log("calls.log", record["n"])
    if record["n"] == 23 and not (HOME / "died.log").exists():
        time.sleep(0.3)
        log("died.log")
        if sys.argv[2] == "exits":
            os._exit(3)
        if sys.argv[2] == "is killed":
            os.kill(os.getpid(), 9)
        os.closerange(3, 4096)
    return record

@data_register("data.dies", _max_workers=2)
async def dies_once_async(record):
    return dies_once.function(record)

chosen = data.dies.dies_once_async if sys.argv[1] == "async" else data.dies.dies_once
run(chosen(_concurrency_mode=sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("mode", "how"),
    paired(["single", "thread", "async"], ["exits", "is killed", "closes every descriptor"]),
)
def test_if_a_record_ends_the_whole_process_the_next_attempt_resumes(
    tmp_path: Path, mode: str, how: str
) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(_COUNT)])
    script = Script(tmp_path, _DIES)
    with killed_at_exit(script.start(mode, how)) as process:
        expected = {"exits": 3, "is killed": -signal.SIGKILL}.get(how, 1)
        assert process.wait(HANG_SECONDS) == expected, script.output()
    script.finish(mode, how)
    assert node(tmp_path).result.read_bytes() == lines({"n": n} for n in range(_COUNT))
    assert not error_rows(node(tmp_path))
    calls = [int(entry[1]) for entry in script.log("calls.log")]
    again = len(calls) - _COUNT
    # Finished records are settled; a single worker settles quick ones together.
    assert again <= (2 if mode != "single" and how != "closes every descriptor" else _COUNT)
