"""Tests of time limits: a call that takes too long is abandoned, and the others continue."""

import asyncio
import gc
import pickle
import sys
import threading
import time
from pathlib import Path

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import RunStoppedError
from dagster_dataops.execution.records.record_failures import timed_out
from dagster_dataops.execution.timeouts import event_loop, record_timeout
from dagster_dataops.execution.timeouts.record_timeout import Stuck, TooManyStuckError
from dagster_dataops.execution.timeouts.thread_calls import CallLimit
from tests.execution.engine import RecordTimeout
from tests.execution.helpers import error_rows, lines, node, run, run_over, write_input
from tests.execution.timeouts.hanging import (
    GROUP,
    LIMIT,
    RELEASE,
    hanging_in,
    hangs,
    hangs_async,
    numbered,
)

# pytest-timeout's SIGALRM would prevent the product's.
pytestmark = pytest.mark.timeout(method="thread")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "thread", "async"])
def test_only_the_records_that_hang_fail(tmp_path: Path, mode: str) -> None:
    hanging = (0, 3, 4, 5, 17, 29)
    records = numbered(*hanging)
    run(hanging_in(mode), write_input(tmp_path / "input.jsonl", records), node(tmp_path))
    well = [record for record in records if not record["hang"]]
    assert node(tmp_path).result.read_bytes() == lines(well)
    rows = error_rows(node(tmp_path))
    assert [row["index"] for row in rows] == list(hanging)
    for row in rows:
        assert row["exception"] == "RecordTimeout"
        assert "longer than its limit of 1.5 s; raise _timeout" in row["message"]
        assert row["input"] == records[row["index"]]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "thread", "async"])
@pytest.mark.parametrize(("retry_on", "tries"), [("ValueError", 1), ("TimeoutError", 2), (None, 2)])
def test_a_timeout_is_a_failed_attempt_which_is_retried_on_request(
    tmp_path: Path, mode: str, retry_on: str | None, tries: int
) -> None:
    operator = hanging_in(mode, _retries=1, _backoff=0, _retry_on=retry_on)
    run_over(tmp_path, operator, numbered(0, count=1))
    (row,) = error_rows(node(tmp_path))
    assert (row["exception"], row["attempts"]) == ("RecordTimeout", tries)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "thread"])
def test_an_async_operator_keeps_its_limit_in_other_modes(tmp_path: Path, mode: str) -> None:
    run_over(tmp_path, hangs_async(_concurrency_mode=mode), numbered(1, count=4))
    (row,) = error_rows(node(tmp_path))
    assert (row["index"], row["exception"]) == (1, "RecordTimeout")


def test_a_timeout_contains_a_remedy_and_pickles() -> None:
    error = RecordTimeout(1.5)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.seconds) == (str(error), 1.5)
    assert isinstance(error, TimeoutError)
    failure = timed_out(1.5)
    assert (failure.exception, failure.message) == ("RecordTimeout", str(error))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "thread"])
def test_the_error_row_shows_where_the_call_hung_and_no_garbage_is_collected_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """CPython would wait for itself if a collection found a `threading.local` just then."""
    looked: list[bool] = []
    frames = sys._current_frames
    monkeypatch.setattr(sys, "_current_frames", lambda: looked.append(gc.isenabled()) or frames())
    run_over(tmp_path, hanging_in(mode), numbered(0, count=1))
    (row,) = error_rows(node(tmp_path))
    assert "in hangs" in row["traceback"]
    assert "RELEASE.wait(30)" in row["traceback"]
    assert "execution/records/" not in row["traceback"]
    assert "in limited" not in row["traceback"]
    assert looked == [False] * (mode == "thread")
    assert gc.isenabled()


@pytest.mark.slow
def test_abandoned_calls_free_their_place(tmp_path: Path) -> None:
    """With more hanging records than workers, the last record is still reached."""
    records = numbered(*range(20), count=21)
    run(
        hangs(_concurrency_mode="thread"),
        write_input(tmp_path / "i.jsonl", records),
        node(tmp_path),
    )
    assert node(tmp_path).result.read_bytes() == lines(records[20:])


@pytest.mark.slow
def test_a_late_outcome_is_dropped_and_its_thread_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, given_up = threading.Event(), threading.Event()
    add = Stuck.add

    def noted(stuck: Stuck, call: object) -> None:
        add(stuck, call)
        given_up.set()

    monkeypatch.setattr(Stuck, "add", noted)

    @data_register(
        GROUP, _concurrency_mode="thread", _timeout=LIMIT, _max_workers=2, _stop_after_failures=0
    )
    def late_comer(record):
        if record["n"] == 1:
            RELEASE.wait(30)
            late.set()
        elif record["n"] == 22:
            assert given_up.wait(30)
            RELEASE.set()
            assert late.wait(30)
        elif not given_up.is_set():
            time.sleep(0.08)  # so that the limit of record 1 is over long before that of record 22
        return record

    before = set(threading.enumerate())
    records = [{"n": n} for n in range(30)]
    run(late_comer(), write_input(tmp_path / "input.jsonl", records), node(tmp_path))
    assert late.is_set()
    assert node(tmp_path).result.read_bytes() == lines(r for r in records if r["n"] != 1)
    assert [row["index"] for row in error_rows(node(tmp_path))] == [1]
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert set(threading.enumerate()) <= before  # others may have ended


@pytest.mark.parametrize("mode", ["thread", "async"])
def test_too_many_calls_left_behind_end_the_run_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(record_timeout, "_FEWEST", 5)
    monkeypatch.setattr(event_loop, "_GRACE_SECONDS", 0.05)

    @data_register(GROUP, _timeout=0.02, _max_workers=1, _stop_after_failures=0)
    def never(record):
        RELEASE.wait(30)

    @data_register(GROUP, _timeout=0.02, _max_workers=1, _stop_after_failures=0)
    async def never_async(record):
        while not RELEASE.is_set():
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                continue

    operator = never_async() if mode == "async" else never(_concurrency_mode=mode)
    with pytest.raises(RunStoppedError, match="6 calls are running long after .*'process'"):
        run_over(tmp_path, operator, [{"n": n} for n in range(50)])


def test_calls_that_return_are_no_longer_counted_as_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_timeout, "_FEWEST", 1)
    stuck, go = Stuck(0), threading.Event()
    limit = CallLimit(0.02, stuck)
    limited = limit.around(lambda _: go.wait(30))
    for _ in range(3):
        threads = set(threading.enumerate())
        with pytest.raises(RecordTimeout):
            limited({})
        go.set()
        for thread in set(threading.enumerate()) - threads:
            thread.join()
        go.clear()
    with pytest.raises(RecordTimeout):
        limited({})
    with pytest.raises(TooManyStuckError):
        limited({})
    go.set()
    limit.close()


def test_an_exception_of_a_call_in_a_thread_is_raised_in_the_waiting_thread() -> None:
    limit = CallLimit(30, Stuck(1))

    def leave(_: object) -> None:
        raise SystemExit(3)

    for _ in range(2):
        with pytest.raises(SystemExit):
            limit.around(leave)({})
    limit.close()
