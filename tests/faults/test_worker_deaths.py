"""Tests of workers that die between two of their steps, and of their parent's reaction."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import WorkerError
from tests.execution.engine import fork_server, worker_main, worker_pool
from tests.execution.helpers import (
    error_rows,
    lines,
    node,
    run,
    run_over,
    second_thread,
    write_input,
)
from tests.faults.crashing import wait_until
from tests.journals import SegmentWriter

pytestmark = pytest.mark.slow

_RECORDS = 20_000


@data_register("data.deaths", _concurrency_mode="process", _max_workers=3)
def waits_first(record, until=""):
    """Take long for the first record, so that other workers finish later ones earlier."""
    if record["n"] == 0 and until:
        wait_until(Path(until).exists, 20, until)
    elif record["n"] == 0:
        threading.Event().wait(0.7)
    return {"n": record["n"]}


class _Dying:
    """Replaces a function of a worker; the first worker that calls it that often dies."""

    def __init__(self, function: Callable[..., object], calls: int, before: bool, flag: Path):
        self._function = function
        self._left = calls
        self._before = before
        self._flag = flag

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., object]:
        return lambda *given, **named: self._call(instance, *given, **named)

    def _call(self, *given: object, **named: object) -> object:
        self._left -= 1
        if not self._left and self._before:
            self._die_once()
        returned = self._function(*given, **named)
        if not self._left:
            self._die_once()
        return returned

    def _die_once(self) -> None:
        try:
            self._flag.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (worker_main._Worker, "_work"),
        (worker_main._Worker, "_write"),
        (SegmentWriter, "append"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_worker_that_dies_at_any_step_costs_no_record_and_doubles_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    calls: int,
    before: bool,
) -> None:
    dying = _Dying(getattr(owner, name), calls, before, tmp_path / "died")
    monkeypatch.setattr(owner, name, dying)
    report = run_over(tmp_path, waits_first(), [{"n": n} for n in range(_RECORDS)])
    assert node(tmp_path).result.read_bytes() == lines({"n": n} for n in range(_RECORDS))
    assert report.manifest.rows_in == _RECORDS
    assert not node(tmp_path).errors.exists()


def test_a_worker_that_dies_after_its_last_span_leaves_nothing_to_do_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its spans are settled, and it has not reported that the range is finished."""
    report_done = worker_main._Worker._report_done
    dying = _Dying(report_done, 1, before=True, flag=tmp_path / "died")
    monkeypatch.setattr(worker_main._Worker, "_report_done", dying)
    report = run_over(
        tmp_path, waits_first(until=str(tmp_path / "died")), [{"n": n} for n in range(_RECORDS)]
    )
    assert (tmp_path / "died").exists()
    assert node(tmp_path).result.read_bytes() == lines({"n": n} for n in range(_RECORDS))
    assert report.manifest.rows_in == _RECORDS


def test_workers_of_a_large_operator_that_die_at_start_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @data_register("data.deaths", _concurrency_mode="process", _max_workers=2)
    def large(record, table=b""):
        return record

    monkeypatch.setattr(worker_pool, "_BOOT", "raise SystemExit(3)")
    monkeypatch.setattr(fork_server, "available", lambda: False)
    with second_thread(True), pytest.raises(WorkerError, match="exit status 3"):
        run_over(tmp_path, large(table=bytes(4 << 20)), [{"n": 1}])


_SLOW_START = """
import os
import time

from dagster_dataops import data_register

time.sleep(0.4)  # a worker that replaces a dead one comes too late for the range of that


@data_register("data.slow_start", _concurrency_mode="process", _max_workers=2)
def act(record):
    time.sleep(2.0 if record["exits"] else 0.01)
    if record["exits"]:
        os._exit(3)
    return {"n": record["n"]}
"""


def test_a_worker_that_dies_in_an_earlier_range_loses_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "slow_start.py").write_text(_SLOW_START)
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.delitem(sys.modules, "slow_start", raising=False)
    import slow_start  # type: ignore[import-not-found]

    rows = [{"n": n, "exits": n == 0} for n in range(400)]
    with second_thread(True):  # no worker has the module in its memory
        report = run(slow_start.act(), write_input(tmp_path / "input.jsonl", rows), node(tmp_path))
    assert [row["index"] for row in error_rows(node(tmp_path))] == [0]
    assert report.dataset.read() == [{"n": n} for n in range(1, 400)]
