import asyncio
import inspect
import traceback
from math import inf
from random import Random
from typing import Any

import orjson
import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import UnencodableError
from dagster_dataops.records import encode
from tests.execution.engine import Failure, Tally, calling_each, failure_of
from tests.execution.helpers import act, act_async, call_one, call_one_async

_GROUP = "data.settling"


def _settled(operator: Any, line: bytes, *interrupts: type[BaseException]) -> Any:
    with calling_each(operator, interrupts) as settle:
        return call_one(settle, line)


class Stop(BaseException):
    """Raised from outside."""


@data_register(_GROUP)
def keep(record):
    record["seen"] = True


@data_register(_GROUP)
def raises(record, error=None):
    raise error


@data_register(_GROUP)
def returns(record, value=None):
    return value


def positional(record, more, /):
    return record


positional.__signature__ = inspect.signature(lambda record: record)  # a wrapper that tells less
positional = data_register(_GROUP)(positional)


@data_register(_GROUP)
def uses_orjson(record):
    return {"text": orjson.dumps({1, 2})}


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ({"a": 1}, b'{"a":1}\n'),
        ([{"a": 1}, {"b": None}], b'{"a":1}\n{"b":null}\n'),
        ([], b""),
        (None, b'{"n":0}\n'),
        ({"a": (1, 2)}, b'{"a":[1,2]}\n'),
        (dict.fromkeys("ab"), b'{"a":null,"b":null}\n'),
    ],
)
def test_return_values_become_lines(value: object, lines: bytes) -> None:
    assert _settled(returns(value=value), b'{"n":0}') == lines


@pytest.mark.parametrize("value", [1, "x", (), ({"a": 1},), [1], [{}, None], {1}, True])
def test_an_invalid_return_value_is_an_invalid_result(value: object) -> None:
    failure = _settled(returns(value=value), b"{}")
    assert isinstance(failure, Failure)
    assert failure.exception == "InvalidResult"
    assert failure.traceback_text == ""


@pytest.mark.parametrize(
    "value",
    [
        {"a": True, "b": float("nan")},
        {"a": None, "b": [1.5, float("inf")]},
        {"a": 0, "b": 2**64},
        {"a": "x", "b": {1, 2}},
        {"a": "\ud800"},
        {1: "a"},
    ],
)
def test_a_record_that_json_cannot_hold_fails_as_encode_does(value: dict[Any, Any]) -> None:
    with pytest.raises(UnencodableError) as refused:
        encode(value)
    failure = _settled(returns(value=value), b"{}")
    assert isinstance(failure, Failure)
    assert (failure.exception, failure.message) == ("InvalidResult", str(refused.value))
    assert failure.traceback_text == ""


@pytest.mark.parametrize("before", [b"true", b"null", b"1", b'"x"', b"1.5", b"[true]"])
def test_an_integer_beyond_64_bits_is_found_behind_any_value(before: bytes) -> None:
    tally = Tally()
    tally.exact = True
    line = b'{"a":%s,"b":%d}' % (before, 2**64)
    with calling_each(keep(), (), tally=tally) as settle:
        failure = call_one(settle, line)
        assert call_one(settle, b'{"a":%s}' % before) == b'{"a":%s,"seen":true}\n' % before
    assert isinstance(failure, Failure)
    assert "an integer beyond 64 bits" in failure.message


@pytest.mark.parametrize("line", [b'{"a":1e300,"b":1}', b'{"a":-9.1e18}', b'{"b":[1.5,2]}'])
def test_a_float_is_no_integer_beyond_64_bits(line: bytes) -> None:
    tally = Tally()
    tally.exact = True
    with calling_each(keep(), (), tally=tally) as settle:
        assert isinstance(call_one(settle, line), bytes)
        for long in (2**64, -(2**63) - 1, 10**300):
            assert isinstance(call_one(settle, line[:-1] + b',"c":%d}' % long), Failure)


class Sketched(data_register.new_group("sketching")):
    """Sketches what a record has."""

    def sketch(self, record):
        if "raise" in record:
            raise ValueError(record["raise"])
        return record.get("value", {1, 2})

    def keep(self, sketches):
        return (True for _ in sketches)


VALUES = [
    *["a", "b,c", "é", 'quo"te', "back\\slash", "", "\x00\n", "ab", "z", "},{", "\x7f"],
    *[1, -2, 3, 2**63, -(2**63), 2**64 - 1, 1.5, -0.0, 1e300, True, None],
    *[[1, "x"], ["y"], {"k": [None]}],
]


@pytest.mark.parametrize("seed", range(20))
def test_sketches_are_written_as_records_with_them_are(seed: int) -> None:
    values = Random(seed).choices(VALUES, k=seed * 3)
    output = bytearray()
    with calling_each(Sketched(), ()) as settle:
        stretch = settle((encode({"value": value}) for value in values), output, inf)
    assert (stretch.finished, stretch.dropped, stretch.extra) == (len(values), 0, 0)
    assert bytes(output) == b"".join(encode({"sketch": value}) for value in values)


@pytest.mark.parametrize(
    ("line", "exception"),
    [
        (b"[]", "InvalidLine"),
        (b"{", "InvalidLine"),
        (b"{}", "InvalidResult"),
        (b'{"raise":"x"}', "ValueError"),
    ],
)
def test_sketches_before_a_failure_are_written(line: bytes, exception: str) -> None:
    lines = iter([b'{"value":"a"}', b'{"value":1}', line, b'{"value":2}'])
    output = bytearray()
    with calling_each(Sketched(), ()) as settle:
        stretch = settle(lines, output, inf)
        assert (stretch.finished, stretch.line) == (2, line)
        assert isinstance(stretch.failure, Failure)
        assert stretch.failure.exception == exception
        assert settle(lines, output, inf).finished == 1
    assert bytes(output) == b'{"sketch":"a"}\n{"sketch":1}\n{"sketch":2}\n'


def test_sketches_before_an_interrupt_are_written() -> None:
    class Stopped(type(Sketched())):
        def sketch(self, record):
            if record["value"] == 2:
                raise Stop
            return record["value"]

    output = bytearray()
    with calling_each(Stopped(), (Stop,)) as settle:
        stretch = settle(iter([b'{"value":1}', b'{"value":2}', b'{"value":3}']), output, inf)
    assert isinstance(stretch.interrupt, Stop)
    assert (stretch.finished, bytes(output)) == (1, b'{"sketch":1}\n')


@pytest.mark.parametrize("start", [b'"a":1e300,', b'"a":-9.1e18,', b'"a":[1.5],', b""])
def test_sketches_of_records_with_an_integer_beyond_64_bits_fail(start: bytes) -> None:
    tally = Tally()
    tally.exact = True
    with calling_each(Sketched(), (), tally=tally) as settle:
        assert isinstance(call_one(settle, b'{%s"value":1}' % start), bytes)
        for long in (2**64, -(2**63) - 1, 10**300):
            line = b'{%s"b":1.5,"c":%d,"value":1}' % (start, long)
            assert isinstance(call_one(settle, line), Failure)


@pytest.mark.parametrize("line", [b"", b" ", b"\t\r", b"\r"])
def test_blank_lines_have_no_outcome(line: bytes) -> None:
    assert _settled(keep(), line) is None
    assert asyncio.run(call_one_async(act_async(), line)) is None


@pytest.mark.parametrize("line", [b"{", b"[]", b"1", b"null", b'{"a":NaN}', b"\xff"])
def test_bad_lines_fail_alike_in_both_settlers(line: bytes) -> None:
    plain = _settled(act(), line)
    assert isinstance(plain, Failure)
    assert plain.exception == "InvalidLine"
    assert asyncio.run(call_one_async(act_async(), line)) == plain


@pytest.mark.parametrize(
    "error", [ValueError("v"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), TypeError("t")]
)
def test_any_exception_is_the_failure_of_its_record(error: BaseException) -> None:
    failure = _settled(raises(error=error), b"{}")
    assert isinstance(failure, Failure)
    assert failure.exception == type(error).__name__
    assert failure.error is error
    assert "in raises" in failure.traceback_text
    assert "dagster_dataops/execution/" not in failure.traceback_text


def test_an_interrupt_is_raised() -> None:
    with pytest.raises(Stop):
        _settled(raises(error=Stop()), b"{}", Stop)


def test_a_type_error_of_the_operator_is_reported_as_its_own() -> None:
    failure = _settled(uses_orjson(), b"{}")
    assert isinstance(failure, Failure)
    assert "uses_orjson" in failure.traceback_text


def test_an_operator_that_cannot_be_called_fails_its_records() -> None:
    failure = _settled(positional(), b"{}")
    assert isinstance(failure, Failure)
    assert "missing 1 required positional argument" in failure.message


def test_an_async_operator_keeps_one_loop_for_all_records() -> None:
    loops = set()

    @data_register(_GROUP)
    async def where(record):
        loops.add(id(asyncio.get_running_loop()))

    with calling_each(where(), ()) as settle:
        assert [call_one(settle, b'{"n":1}') for _ in range(5)] == [b'{"n":1}\n'] * 5
    assert len(loops) == 1


def test_cancelling_itself_is_a_failure_and_being_cancelled_is_not() -> None:
    @data_register(_GROUP)
    async def cancels(record):
        raise asyncio.CancelledError

    @data_register(_GROUP)
    async def waits(record):
        await asyncio.sleep(60)

    async def cancelled() -> None:
        task = asyncio.create_task(call_one_async(waits(), b"{}"))
        await asyncio.sleep(0)
        task.cancel()
        await task

    assert asyncio.run(call_one_async(cancels(), b"{}")).exception == "CancelledError"
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


def _chain(length: int) -> ValueError:
    """Return an exception with a chain of that length, as a loop of retries makes it."""
    error = ValueError(0)
    for number in range(1, length + 1):
        later = ValueError(number)
        later.__context__ = error
        error = later
    return error


def _group(members: int) -> BaseException:
    return ExceptionGroup("of many", [ValueError(number) for number in range(members)])


def test_a_chain_of_exceptions_is_shown_in_full() -> None:
    text = failure_of(_chain(20)).traceback_text
    assert [f"ValueError: {n}\n" in text for n in range(21)] == [True] * 21


@pytest.mark.parametrize("error", [_chain(5_000), _group(5_000)], ids=["chain", "group"])
def test_an_exception_with_a_chain_of_thousands_is_reported_without_the_chain(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    formatted = []
    made = traceback.TracebackException.__init__

    def counted(*given: Any, **named: Any) -> None:
        formatted.append(given)
        made(*given, **named)

    monkeypatch.setattr(traceback.TracebackException, "__init__", counted)
    failure = _settled(raises(error=error), b"{}")
    assert isinstance(failure, Failure)
    assert len(formatted) <= 100
    assert failure.message == str(error)
    assert "in raises" in failure.traceback_text
    assert failure.traceback_text.endswith(f"{type(error).__name__}: {error}\n")
    assert "left out" in failure.traceback_text


@pytest.mark.parametrize("asynchronous", [False, True])
def test_only_the_failure_of_the_last_try_is_formatted(
    asynchronous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ToldError(Exception):
        count = 0

        def __str__(self) -> str:
            ToldError.count += 1
            return "told"

    @data_register(_GROUP, _retries=5, _backoff=0)
    def fails(record):
        raise ToldError

    @data_register(_GROUP, _retries=5, _backoff=0)
    async def fails_async(record):
        raise ToldError

    if asynchronous:
        failure = asyncio.run(call_one_async(fails_async(), b"{}"))
    else:
        failure = _settled(fails(), b"{}")
    assert isinstance(failure, Failure)
    assert (failure.message, failure.attempts) == ("told", 6)
    assert failure.traceback_text.endswith("ToldError: told\n")
    assert ToldError.count == 2  # once for the message, once for the traceback
