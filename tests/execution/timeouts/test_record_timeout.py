"""Time limits: a call that takes too long is given up, and the others go on."""

import asyncio
import gc
import pickle
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import RunStoppedError
from dagster_dataops.execution.records.async_settle import async_settler
from dagster_dataops.execution.records.record_failures import timed_out
from dagster_dataops.execution.records.settle import settle_one, settling
from dagster_dataops.execution.timeouts import event_loop, record_timeout
from dagster_dataops.execution.timeouts.record_timeout import (
    RecordTimeout,
    Stuck,
    TooManyStuckError,
)
from dagster_dataops.execution.timeouts.sigalrm import Alarm, alarm_obstacle
from dagster_dataops.execution.timeouts.thread_calls import CallLimit
from dagster_dataops.operators.record_context import Tally
from tests.execution.helpers import Listener, error_rows, lines, node, run, write_input

_GROUP = "data.limits"
_LIMIT = 1.5  # the others must not reach it, however busy the machine is
_RELEASE = threading.Event()  # lets go whatever a test has left hanging

# pytest-timeout's own SIGALRM would forbid ours.
pytestmark = pytest.mark.timeout(method="thread")


@pytest.fixture(autouse=True)
def _let_go():
    _RELEASE.clear()
    yield
    _RELEASE.set()


@data_register(_GROUP, _timeout=_LIMIT, _max_workers=3, _stop_after_failures=0)
def hangs(record):
    if record["hang"]:
        _RELEASE.wait(30)
    return record


@data_register(_GROUP, _timeout=_LIMIT, _max_workers=3, _stop_after_failures=0)
async def hangs_async(record):
    if record["hang"]:
        await asyncio.sleep(30)
    return record


def _hanging(mode: str, **given: Any) -> Any:
    return hangs_async(**given) if mode == "async" else hangs(_concurrency_mode=mode, **given)


def _records(*hanging: int, count: int = 30) -> list[dict[str, Any]]:
    return [{"n": n, "hang": n in hanging} for n in range(count)]


@pytest.mark.parametrize("mode", ["single", "thread", "async"])
def test_only_the_records_that_hang_fail(tmp_path: Path, mode: str) -> None:
    hanging = (0, 3, 4, 5, 17, 29)
    records = _records(*hanging)
    run(_hanging(mode), write_input(tmp_path / "input.jsonl", records), node(tmp_path))
    well = [record for record in records if not record["hang"]]
    assert node(tmp_path).result.read_bytes() == lines(well)
    rows = error_rows(node(tmp_path))
    assert [row["index"] for row in rows] == list(hanging)
    for row in rows:
        assert row["exception"] == "RecordTimeout"
        assert "longer than its limit of 1.5 s; raise _timeout" in row["message"]
        assert row["input"] == records[row["index"]]


@pytest.mark.parametrize("mode", ["single", "thread"])
def test_the_error_row_says_where_the_call_hung(tmp_path: Path, mode: str) -> None:
    dataset = write_input(tmp_path / "input.jsonl", _records(0, count=1))
    run(_hanging(mode), dataset, node(tmp_path))
    (row,) = error_rows(node(tmp_path))
    assert "in hangs" in row["traceback"]
    assert "_RELEASE.wait(30)" in row["traceback"]
    assert "execution/records/" not in row["traceback"]
    assert "in limited" not in row["traceback"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "thread", "async"])
def test_a_time_out_is_a_failed_try(tmp_path: Path, mode: str) -> None:
    dataset = write_input(tmp_path / "input.jsonl", _records(1, count=3))
    run(_hanging(mode, _retries=2, _backoff=0), dataset, node(tmp_path))
    (row,) = error_rows(node(tmp_path))
    assert (row["exception"], row["attempts"]) == ("RecordTimeout", 3)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "thread", "async"])
@pytest.mark.parametrize(("retry_on", "tries"), [("ValueError", 1), ("TimeoutError", 2)])
def test_a_time_out_is_tried_again_if_it_is_asked_for(
    tmp_path: Path, mode: str, retry_on: str, tries: int
) -> None:
    dataset = write_input(tmp_path / "input.jsonl", _records(0, count=1))
    operator = _hanging(mode, _retries=1, _backoff=0, _retry_on=retry_on)
    run(operator, dataset, node(tmp_path))
    (row,) = error_rows(node(tmp_path))
    assert row["attempts"] == tries


@pytest.mark.parametrize("mode", ["single", "thread"])
def test_an_async_operator_keeps_its_limit_in_other_modes(tmp_path: Path, mode: str) -> None:
    dataset = write_input(tmp_path / "input.jsonl", _records(1, count=4))
    run(hangs_async(_concurrency_mode=mode), dataset, node(tmp_path))
    (row,) = error_rows(node(tmp_path))
    assert (row["index"], row["exception"]) == (1, "RecordTimeout")


# -- threads


@pytest.mark.slow
def test_calls_that_were_given_up_hold_no_place(tmp_path: Path) -> None:
    """More hanging records than workers: the last one is reached all the same."""
    records = _records(*range(20), count=21)
    run(
        hangs(_concurrency_mode="thread"),
        write_input(tmp_path / "i.jsonl", records),
        node(tmp_path),
    )
    assert node(tmp_path).result.read_bytes() == lines(records[20:])


def test_a_late_outcome_is_thrown_away_and_its_thread_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, given_up = threading.Event(), threading.Event()
    add = Stuck.add

    def noted(stuck: Stuck, call: object) -> None:
        add(stuck, call)
        given_up.set()

    monkeypatch.setattr(Stuck, "add", noted)

    @data_register(
        _GROUP, _concurrency_mode="thread", _timeout=_LIMIT, _max_workers=2, _stop_after_failures=0
    )
    def late_comer(record):
        if record["n"] == 1:
            _RELEASE.wait(30)
            late.set()
        elif record["n"] == 22:
            assert given_up.wait(30)
            _RELEASE.set()
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

    @data_register(_GROUP, _timeout=0.02, _max_workers=1, _stop_after_failures=0)
    def never(record):
        _RELEASE.wait(30)

    @data_register(_GROUP, _timeout=0.02, _max_workers=1, _stop_after_failures=0)
    async def never_async(record):
        while not _RELEASE.is_set():
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                continue

    operator = never_async() if mode == "async" else never(_concurrency_mode=mode)
    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(50)])
    with pytest.raises(RunStoppedError, match="6 calls went on long after .*'process'"):
        run(operator, dataset, node(tmp_path))


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


def test_whatever_a_call_raises_in_its_thread_is_raised_to_whoever_waits() -> None:
    limit = CallLimit(30, Stuck(1))

    def leave(_: object) -> None:
        raise SystemExit(3)

    for _ in range(2):
        with pytest.raises(SystemExit):
            limit.around(leave)({})
    limit.close()


# -- a coroutine


def test_a_coroutine_that_swallows_cancellation_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_loop, "_GRACE_SECONDS", 0.05)

    @data_register(_GROUP, _timeout=0.1, _max_workers=2, _stop_after_failures=0)
    async def stubborn(record):
        while record["hang"] and not _RELEASE.is_set():
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                continue
        return record

    records = _records(2, 3, 4)
    run(stubborn(), write_input(tmp_path / "input.jsonl", records), node(tmp_path))
    assert [row["index"] for row in error_rows(node(tmp_path))] == [2, 3, 4]
    assert node(tmp_path).result.read_bytes() == lines(r for r in records if not r["hang"])


def test_a_cancelled_coroutine_may_clean_up() -> None:
    cleaned = []

    @data_register(_GROUP, _timeout=0.05, _stop_after_failures=0)
    async def tidy(record):
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0)
            cleaned.append(record)

    outcome = asyncio.run(_awaited(async_settler(tidy())(b"{}", Tally())))
    assert outcome.exception == "RecordTimeout"
    assert cleaned == [{}]


def test_a_thread_of_a_coroutine_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_loop, "_GRACE_SECONDS", 0.05)

    @data_register(_GROUP, _timeout=0.1, _stop_after_failures=0)
    async def waits_in_a_thread(record):
        await asyncio.to_thread(_RELEASE.wait, 30)

    run(waits_in_a_thread(), write_input(tmp_path / "input.jsonl", [{"n": 1}]), node(tmp_path))
    assert not _RELEASE.is_set()
    assert [row["exception"] for row in error_rows(node(tmp_path))] == ["RecordTimeout"]


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


# -- the main thread


def test_an_alarm_raises_again_if_the_operator_catches_it(tmp_path: Path) -> None:
    caught = []

    @data_register(_GROUP, _concurrency_mode="single", _timeout=0.05, _stop_after_failures=0)
    def catches(record):
        for _ in range(2):
            try:
                time.sleep(30)
            except Exception as error:
                caught.append(error)
                if len(caught) == 2:
                    raise

    run(catches(), write_input(tmp_path / "input.jsonl", [{"n": 1}]), node(tmp_path))
    assert [type(error) for error in caught] == [RecordTimeout] * 2
    assert [row["exception"] for row in error_rows(node(tmp_path))] == ["RecordTimeout"]


def test_an_alarm_that_comes_late_hurts_nobody() -> None:
    """Rings it by hand at every moment at which no call is under way, or another one."""
    alarm = Alarm(30)
    with alarm.installed():
        signal.raise_signal(signal.SIGALRM)
        limited = alarm.around(lambda _: signal.raise_signal(signal.SIGALRM))
        limited({})  # the one of the call before, arriving in this one
        signal.raise_signal(signal.SIGALRM)
    with Alarm(0.001).installed():
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_calls_about_as_long_as_their_limit_end_well_or_in_time() -> None:
    """Whatever the race, each record has one outcome and none is raised outside its call."""

    @data_register(_GROUP)
    def nearly(record):
        until = time.perf_counter() + 0.0005 + record["n"] * 1e-6
        while time.perf_counter() < until:
            pass
        return record

    alarm = Alarm(0.001)
    with alarm.installed(), settling(nearly(), (), alarm.around) as settle:
        outcomes = [settle_one(settle, b'{"n":%d}' % (n % 1000)) for n in range(1000)]
    good = [outcome for outcome in outcomes if isinstance(outcome, bytes)]
    bad = [outcome for outcome in outcomes if not isinstance(outcome, bytes)]
    assert len(good) + len(bad) == 1000
    assert {failure.exception for failure in bad if failure} <= {"RecordTimeout"}
    assert all(bad)


def test_the_alarm_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    rung = threading.Event()
    before = signal.signal(signal.SIGALRM, lambda *_: rung.set())
    try:
        listener = Listener()
        dataset = write_input(tmp_path / "input.jsonl", [{"n": 1, "hang": False}])
        run(hangs(_concurrency_mode="single"), dataset, node(tmp_path), progress=listener)
        assert listener.notes == [
            "_timeout=1.5 is not kept in single mode here: something else uses SIGALRM"
        ]
        signal.raise_signal(signal.SIGALRM)
        assert rung.is_set()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_without_signals_no_alarm_can_be_used() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(alarm_obstacle()))
    thread.start()
    thread.join()
    assert found == ["the run is not in the main thread"]
    assert alarm_obstacle() is None


def test_a_time_out_says_what_to_do_and_pickles() -> None:
    error = RecordTimeout(1.5)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.seconds) == (str(error), 1.5)
    assert isinstance(error, TimeoutError)
    failure = timed_out(1.5)
    assert (failure.exception, failure.message) == ("RecordTimeout", str(error))


def test_no_garbage_is_collected_while_it_is_looked_where_a_call_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CPython would wait for itself if a collection found a `threading.local` just then."""
    looked: list[bool] = []
    frames = sys._current_frames

    def look() -> dict[int, Any]:
        looked.append(gc.isenabled())
        return frames()

    monkeypatch.setattr(sys, "_current_frames", look)
    test_the_error_row_says_where_the_call_hung(tmp_path, "thread")
    assert looked
    assert not any(looked)
    assert gc.isenabled()
