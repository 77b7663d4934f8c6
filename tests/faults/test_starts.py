"""Tests of runs started in any place: children, threads, other operators."""

import multiprocessing
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.data import data_register
from tests.execution.engine import processes
from tests.execution.helpers import lines, node, run, run_over, second_thread, write_input
from tests.faults.crashing import HANG_SECONDS, children_of
from tests.nodes import background

_COUNT = 2000
_METHODS = ("fork", "spawn", "forkserver")


@data_register("data.starts", _concurrency_mode="process", _max_workers=3)
def double(record):
    return {"n": 2 * record["n"]}


@data_register("data.starts", _concurrency_mode="process", _max_workers=2)
def nest(record, folder="", mode="process"):
    """Run another operator inside this one."""
    home = Path(folder) / str(record["n"])
    return {"n": record["n"], "inner": work(home, count=100, _concurrency_mode=mode)}


def work(folder: Path, count: int = _COUNT, **settings: Any) -> int:
    """Run twice, so that the second run has files to remove; return the number of results."""
    dataset = write_input(folder / "input.jsonl", [{"n": n} for n in range(count)])
    for attempt in ("first", "second"):
        run(double(**settings), dataset, node(folder), run=attempt)
    expected = lines({"n": 2 * n} for n in range(count))
    assert node(folder).result.read_bytes() == expected
    return count


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("daemon", [False, True], ids=["child", "daemon"])
@pytest.mark.parametrize("method", _METHODS)
def test_a_child_of_any_start_method_runs_operators(
    tmp_path: Path, method: str, daemon: bool
) -> None:
    context: Any = multiprocessing.get_context(method)
    child = context.Process(target=work, args=(tmp_path,), daemon=daemon)
    child.start()
    child.join(HANG_SECONDS)
    assert child.exitcode == 0
    child.close()


def test_a_child_forked_while_something_is_synced_runs_operators(tmp_path: Path) -> None:
    release = threading.Event()
    background.run(lambda: release.wait(HANG_SECONDS) and None)
    try:
        context = multiprocessing.get_context("fork")
        child = context.Process(target=work, args=(tmp_path,))
        child.start()
        child.join(HANG_SECONDS)
        assert child.exitcode == 0
        child.close()
    finally:
        release.set()
        background.finish()


@pytest.mark.slow
def test_threads_run_operators_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        found = threads.map(lambda n: work(tmp_path / str(n), _max_workers=1), range(2))
        assert list(found) == [_COUNT] * 2


@pytest.mark.slow
@pytest.mark.parametrize("inner", ["process", "thread", "single"])
@pytest.mark.parametrize("spawned", [False, True], ids=["forked", "spawned"])
def test_an_operator_runs_another_one(tmp_path: Path, inner: str, spawned: bool) -> None:
    before = set(children_of(os.getpid()))  # multiprocessing's processes, some of which it keeps
    with second_thread(spawned):
        run_over(
            tmp_path, nest(folder=str(tmp_path / "inner"), mode=inner), [{"n": n} for n in range(4)]
        )
    expected = lines({"n": n, "inner": 100} for n in range(4))
    assert node(tmp_path).result.read_bytes() == expected
    assert set(children_of(os.getpid())) <= before


@pytest.mark.slow
def test_an_outer_operator_in_a_thread_runs_another_one_in_processes(tmp_path: Path) -> None:
    outer = nest(folder=str(tmp_path / "inner"), _concurrency_mode="thread", _max_workers=2)
    run_over(tmp_path, outer, [{"n": n} for n in range(2)])
    assert node(tmp_path).result.read_bytes().count(b'"inner":100') == 2


@data_register("data.starts", _concurrency_mode="process", _max_workers=2)
def meet(record, folder=""):
    """After a hundred quick records, wait until another worker is at one of the slow ones."""
    if record["n"] < 100:
        return None
    (Path(folder) / str(os.getpid())).touch()
    until = time.monotonic() + HANG_SECONDS
    while len(list(Path(folder).iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    return {"met": len(list(Path(folder).iterdir()))}


@pytest.mark.slow
def test_a_slow_record_after_quick_ones_starts_the_other_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_FORK_SECONDS", "_SPAWN_SECONDS"):
        monkeypatch.setattr(processes, name, 1.5)  # the quick ones do not last that long
    (tmp_path / "at work").mkdir()
    run_over(tmp_path, meet(folder=str(tmp_path / "at work")), [{"n": n} for n in range(140)])
    assert node(tmp_path).result.read_bytes().count(b'{"met":2}') == 40
