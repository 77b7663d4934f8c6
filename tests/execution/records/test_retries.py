import asyncio
import builtins
import json
import math
import socket
import threading
from pathlib import Path
from typing import Any, Final

import pytest

from dagster_dataops import To, trace
from dagster_dataops.data import data_register
from dagster_dataops.errors import RecordError, RunStoppedError, UnencodableError
from dagster_dataops.execution.records.async_calling import async_callers
from dagster_dataops.execution.records.retries import PauseEnded, Retries, matches
from dagster_dataops.operators.outcomes.return_contract import ContractError
from tests.execution.engine import Failure, Outcome, Tally, calling_each, calling_once
from tests.execution.helpers import (
    MODES,
    Listener,
    call_one,
    call_one_async,
    error_rows,
    lines,
    node,
    run,
    run_over,
    write_input,
)
from tests.journals import Line
from tests.nodes import ExecutionSettings

_GROUP = "data.retrying"


class BusyError(ConnectionError):
    """The error of a service that is busy."""


def _count(record: dict[str, Any], folder: str) -> int:
    """Record one more attempt for this record, across processes, and return its number."""
    path = Path(folder) / f"tries-{record['n']}"
    with path.open("a") as file:
        file.write("x")
    return path.stat().st_size


def _act(record: dict[str, Any], folder: str) -> object:
    tries = _count(record, folder)
    assert "seen" not in record, "the record of an earlier try"
    record["seen"] = tries
    if tries < record["good_at"]:
        raise BusyError(f"try {tries} of {record['n']}")
    return record.get("answers", record)


@data_register(_GROUP, _backoff=0, _max_workers=2, _stop_after_failures=0)
def shaky(record, folder=""):
    return _act(record, folder)


@data_register(_GROUP, _backoff=0, _max_workers=2, _stop_after_failures=0)
async def shaky_async(record, folder=""):
    await asyncio.sleep(0)
    return _act(record, folder)


def _shaky(mode: str, folder: Path, **given: Any) -> Any:
    chosen = shaky_async if mode == "async" else shaky
    return chosen(folder=str(folder), _concurrency_mode=mode, **given)


@pytest.mark.parametrize("mode", MODES)
def test_a_record_is_tried_again_with_a_new_copy_until_it_succeeds(
    tmp_path: Path, mode: str
) -> None:
    goods = [1, 3, 1, 2, 9, 1]
    records = [{"n": n, "good_at": good} for n, good in enumerate(goods)]
    run_over(tmp_path, _shaky(mode, tmp_path, _retries=2), records)
    well = [{**record, "seen": record["good_at"]} for record in records if record["good_at"] <= 3]
    assert node(tmp_path).result.read_bytes() == lines(well)
    (row,) = error_rows(node(tmp_path))
    assert (row["index"], row["exception"], row["attempts"]) == (4, "BusyError", 3)
    assert row["message"] == "try 3 of 4"
    assert row["input"] == records[4]
    assert "dagster_dataops/execution" not in row["traceback"]
    assert [(tmp_path / f"tries-{n}").stat().st_size for n in range(6)] == [1, 3, 1, 2, 3, 1]


@pytest.mark.parametrize("mode", MODES)
def test_a_further_try_may_drop_or_multiply_its_record(tmp_path: Path, mode: str) -> None:
    answers: list[object] = [[], [{"a": 1}, {"a": 2}], {"b": 1}]
    records = [{"n": n, "good_at": 2, "answers": answer} for n, answer in enumerate(answers)]
    report = run_over(tmp_path, _shaky(mode, tmp_path, _retries=1), records)
    assert node(tmp_path).result.read_bytes() == lines([{"a": 1}, {"a": 2}, {"b": 1}])
    assert (report.manifest.rows_in, report.manifest.dropped, report.manifest.failed) == (3, 1, 0)


@pytest.mark.parametrize("mode", MODES)
def test_bad_lines_and_bad_results_are_not_tried_again(tmp_path: Path, mode: str) -> None:
    run_over(
        tmp_path, _shaky(mode, tmp_path, _retries=5), [{"n": 0, "good_at": 1, "answers": 5}, 3]
    )
    rows = error_rows(node(tmp_path))
    assert [row["exception"] for row in rows] == ["InvalidResult", "InvalidLine"]
    assert [row["attempts"] for row in rows] == [1, 1]
    assert (tmp_path / "tries-0").stat().st_size == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("retry_on", "tries"),
    [("BusyError", 2), (BusyError, 2), ("OSError", 2), ([ValueError, "KeyError"], 1)],
)
def test_only_the_requested_exceptions_are_retried(
    tmp_path: Path, mode: str, retry_on: Any, tries: int
) -> None:
    run_over(
        tmp_path, _shaky(mode, tmp_path, _retries=1, _retry_on=retry_on), [{"n": 0, "good_at": 9}]
    )
    (row,) = error_rows(node(tmp_path))
    assert row["attempts"] == (tmp_path / "tries-0").stat().st_size == tries


@pytest.mark.parametrize("mode", MODES)
def test_the_step_fails_only_after_the_last_try(tmp_path: Path, mode: str) -> None:
    with pytest.raises(RecordError, match="BusyError: try 3 of 0"):
        run_over(
            tmp_path,
            _shaky(mode, tmp_path, _retries=2, _ignore_errors=False),
            [{"n": 0, "good_at": 9}],
        )


@pytest.mark.parametrize("mode", ["single", "thread", "async"])
def test_the_number_of_retried_records_is_reported(tmp_path: Path, mode: str) -> None:
    records = [{"n": n, "good_at": good} for n, good in enumerate([1, 2, 2, 9])]
    listener = Listener()
    run_over(tmp_path, _shaky(mode, tmp_path, _retries=1), records, progress=listener)
    assert listener.notes == ["tried 3 failed records again; 2 of them succeeded"]


@pytest.mark.parametrize("mode", ["thread", "async"])
def test_a_stop_ends_the_pause_before_the_next_try(tmp_path: Path, mode: str) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [{"n": n, "good_at": 9} for n in range(4)])
    before = set(threading.enumerate())

    def stop() -> str | None:
        return "told to" if (tmp_path / "tries-1").exists() else None

    operator = _shaky(mode, tmp_path, _retries=9, _backoff=3600)
    with pytest.raises(RunStoppedError, match="told to"):
        run(operator, dataset, node(tmp_path), should_stop=stop)
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert set(threading.enumerate()) <= before
    assert all(path.stat().st_size == 1 for path in tmp_path.glob("tries-*"))


class Stop(BaseException):
    """Raised from outside."""


def test_an_interrupt_during_a_pause_is_raised_and_keeps_earlier_records() -> None:
    settings = ExecutionSettings(retries=3).resolved(asynchronous=False)

    def interrupted(_: float) -> None:
        raise Stop

    @data_register(_GROUP)
    def divide(record):
        return {"n": 1 // record["n"]}

    with calling_each(divide(), (Stop,), retries=Retries(settings, interrupted)) as settle:
        output = bytearray()
        stretch = settle(iter([b'{"n":1}', b'{"n":0}']), output, math.inf)
        assert bytes(output) == b'{"n":1}\n'
        assert (stretch.finished, stretch.line, stretch.failure) == (1, b'{"n":0}', None)
        assert isinstance(stretch.interrupt, Stop)
        with pytest.raises(Stop):
            call_one(settle, b'{"n":0}')


def _ended(_: float) -> None:
    raise PauseEnded


def test_a_pause_during_which_the_run_stops_is_no_failure_of_the_record() -> None:
    @data_register(_GROUP, _retries=3, _backoff=0.001)
    def fails(record):
        raise BusyError

    @data_register(_GROUP, _retries=3, _backoff=0.001)
    async def fails_async(record):
        raise BusyError

    line, operator, awaited = Line(0, 2, b"{}"), fails(), fails_async()
    settings = ExecutionSettings(retries=3, backoff=0.001)
    for asynchronous in (False, True):
        retries = Retries(settings.resolved(asynchronous=asynchronous), _ended)
        with pytest.raises(PauseEnded):
            if asynchronous:
                asyncio.run(async_callers(awaited, None, retries)()([line]))
            else:
                with calling_once(operator, (), None, retries, Tally()) as settle:
                    settle([line])


def test_lines_after_a_record_tried_again_are_not_lost() -> None:
    seen = []

    @data_register(_GROUP, _retries=1, _backoff=0)
    def fails_first(record):
        seen.append(record["n"])
        if record["n"] == 2 and seen.count(2) == 1:
            raise BusyError
        return record

    with calling_each(fails_first(), ()) as settle:
        output, source = bytearray(), iter([b'{"n":%d}' % n for n in range(5)])
        settled = 0
        while settled < 5:
            settled += settle(source, output, math.inf).finished
    assert seen == [0, 1, 2, 2, 3, 4]
    assert bytes(output) == lines({"n": n} for n in range(5))


def _raising(errors: list[BaseException]) -> Any:
    """Return an operator that raises one error after another."""
    left = iter(errors)

    @data_register(_GROUP)
    def raises_next(record):
        raise next(left)

    return raises_next()


def _settled(operator: Any, retries: Retries) -> Outcome:
    with calling_each(operator, (), retries=retries) as settle:
        return call_one(settle, b"{}")


def test_pauses_double_vary_and_end_at_a_minute() -> None:
    seen = set()
    for _ in range(5):
        pauses: list[float] = []
        settings = ExecutionSettings(retries=12, backoff=0.5).resolved(asynchronous=False)
        _settled(_raising([BusyError()] * 13), Retries(settings, pauses.append))
        assert len(pauses) == 12
        longest = [min(0.5 * 2**n, 60.0) for n in range(12)]
        assert all(most / 2 <= pause <= most for pause, most in zip(pauses, longest, strict=True))
        seen.add(tuple(pauses))
    assert len(seen) == 5


def test_another_kind_of_failure_ends_the_tries() -> None:
    settings = ExecutionSettings(retries=5, retry_on=("BusyError",)).resolved(asynchronous=False)
    outcome = _settled(_raising([BusyError(), ValueError()]), Retries(settings, lambda _: None))
    assert isinstance(outcome, Failure)
    assert (outcome.exception, outcome.attempts) == ("ValueError", 2)


def test_tries_of_many_coroutines_do_not_mix(tmp_path: Path) -> None:
    async def all_of_them() -> list[Any]:
        given = [b'{"n":%d,"good_at":%d}' % (n, n % 6 + 1) for n in range(60)]
        operator = shaky_async(folder=str(tmp_path), _retries=3)
        return await asyncio.gather(*(call_one_async(operator, line) for line in given))

    for n, outcome in enumerate(asyncio.run(all_of_them())):
        if n % 6 < 4:
            assert outcome == b'{"n":%d,"good_at":%d,"seen":%d}\n' % (n, n % 6 + 1, n % 6 + 1)
        else:
            assert outcome.attempts == 4


@pytest.mark.parametrize(
    ("error", "retry_on", "expected"),
    [
        (ValueError(), None, True),
        (TimeoutError(), None, True),
        (ContractError(), None, False),
        (UnencodableError("key", "holds a set"), None, False),
        (KeyboardInterrupt(), None, False),
        (SystemExit(), None, False),
        (SystemExit(), ("SystemExit",), True),
        (BusyError(), ("OSError",), True),
        (BusyError(), (f"{__name__}.BusyError",), True),
        (BusyError(), (f"{__name__}.Other",), False),
        (BusyError(), ("elsewhere.BusyError",), False),
        (TimeoutError(), ("socket.timeout",), True),
        (OSError(), ("IOError",), True),
        (ValueError(), (OSError, "KeyError"), False),
    ],
)
def test_exceptions_that_are_retried(error: BaseException, retry_on: Any, expected: bool) -> None:
    assert socket.timeout is builtins.TimeoutError
    assert matches(error, retry_on) is expected


def test_without_retries_the_first_failure_stands_and_nothing_is_reported() -> None:
    retries = Retries(ExecutionSettings().resolved(asynchronous=False), pytest.fail)
    outcome = _settled(_raising([BusyError("told")]), retries)
    assert isinstance(outcome, Failure)
    assert (outcome.message, outcome.attempts) == ("told", 1)
    listener = Listener()
    retries.report(listener)
    assert listener.notes == []


MODES_TRIED: Final = ("single", "thread", "process")


@pytest.mark.parametrize("mode", MODES_TRIED)
def test_outputs_of_records_that_succeed_at_a_later_try_are_theirs(
    tmp_path: Path, mode: str
) -> None:
    @data_register(_GROUP, outputs=("train", "test", "both"), _retries=1, _backoff=0)
    def routes(record, folder: str):
        _fail_first(Path(folder), record["n"])
        name = ("train", "test", "both")[record["n"] % 3]
        return [To("train", record), To("test", record)] if name == "both" else To(name)

    report = run_over(
        tmp_path, routes(folder=str(tmp_path), _concurrency_mode=mode), [{"n": n} for n in range(9)]
    )
    found = {name: [one["n"] for one in made.dataset] for name, made in report.outputs.items()}
    assert found == {"train": [0, 2, 3, 5, 6, 8], "test": [1, 2, 4, 5, 7, 8], "both": []}


@pytest.mark.parametrize("mode", MODES_TRIED)
def test_reasons_of_records_that_are_dropped_at_a_later_try_are_counted(
    tmp_path: Path, mode: str
) -> None:
    @data_register(_GROUP, _retries=1, _backoff=0)
    def drops(record, context, folder: str):
        _fail_first(Path(folder), record["n"])
        if record["n"] % 3 == 0:
            return context.drop("third")
        return [record, record] if record["n"] % 3 == 1 else record

    report = run_over(
        tmp_path, drops(folder=str(tmp_path), _concurrency_mode=mode), [{"n": n} for n in range(9)]
    )
    assert [one["n"] for one in report.dataset] == [1, 1, 2, 4, 4, 5, 7, 7, 8]
    assert (report.manifest.dropped, report.manifest.drops) == (3, {"third": 3})
    source = [json.loads(str(place.text))["n"] for place in trace(node(tmp_path).path, 3).sources]
    assert source == [2]  # the map knows the records of both lines and of none


def _fail_first(folder: Path, number: int) -> None:
    """Fail at the first try of a record, in whichever process."""
    mark = folder / f"tried {number}"
    if not mark.exists():
        mark.touch()
        raise ValueError(number)
