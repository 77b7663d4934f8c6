"""Settling: one input line in, its encoded outcome or its failure out, the same in every mode.

The only place where user code is called on a record, and so the only one that catches whatever
it raises.
"""

import asyncio
import math
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import orjson

from dagster_dataops.errors import UnencodableError
from dagster_dataops.operators.calling import record_function
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.outcome import ContractError, encode_outcome
from dagster_dataops.records import DUMP_OPTIONS, Record, decode, finite, unencodable

T = TypeVar("T")
_MAX_RAW_BYTES: Final = 64 << 10
_MAX_TEXT: Final = 64 << 10
_NEVER_NAN: Final = frozenset({bool, type(None)})


class Failure(NamedTuple):
    """What became of a record that failed.

    Attributes:
        exception: Class name of what was raised.
        message: Its text.
        traceback_text: The frames of the operator, ours left out; empty for a bad line.
        error: What was raised, where it is still at hand.
    """

    exception: str
    message: str
    traceback_text: str
    error: BaseException | None = None


# A line's outcome: encoded records (none for a dropped one), a failure, or None for a blank line.
Outcome: TypeAlias = bytes | Failure | None
Interrupts: TypeAlias = tuple[type[BaseException], ...]


class Stretch(NamedTuple):
    """How far a stretch of lines was settled before a line that became no records.

    Attributes:
        settled: Lines whose records, if any, are in the output.
        dropped: How many of them have none.
        extra: Result records beyond one a line, of lines that became several.
        line: The line that ended it; ``None`` at the end of the lines or of the time.
        failure: What happened to that line; ``None`` if it is blank.
        interrupt: What came from outside while that line was worked on; it is to be raised
            once what was settled before is safe.
    """

    settled: int
    dropped: int
    extra: int
    line: bytes | None = None
    failure: Failure | None = None
    interrupt: BaseException | None = None


# Settles lines into a buffer until one becomes no records, or a monotonic time has come.
Settle: TypeAlias = Callable[[Iterator[bytes], bytearray, float], Stretch]


@contextmanager
def settling(operator: Operator, interrupts: Interrupts) -> Iterator[Settle]:
    """Yield the function that settles lines, for the thread that calls this.

    Args:
        operator: A record operator; an ``async def`` one runs in an event loop of its own.
        interrupts: What may be raised into the operator from outside, by a signal; it passes
            through and is nobody's failure.
    """
    forward = record_function(operator)
    if not operator.__dataops__.spec.asynchronous:
        yield _settler(forward, interrupts)
        return
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        loop = runner.get_loop()
        yield _settler(lambda record: run_through(loop, forward(record)), interrupts)


def run_through(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run ``coroutine`` to its end, even if a task that it started calls ``sys.exit()``.

    The loop lets that pass through to its caller at once, though it is the task's to raise.
    """
    task = loop.create_task(coroutine)
    while True:
        try:
            return loop.run_until_complete(task)
        except SystemExit:
            if task.done():
                return task.result()


def _settler(forward: Callable[[Record], object], interrupts: Interrupts) -> Settle:  # noqa: C901 - see settle()
    loads, dumps, clock = orjson.loads, orjson.dumps, time.monotonic

    def settle(lines: Iterator[bytes], output: bytearray, until: float) -> Stretch:  # noqa: C901, PLR0912 - each call a record costs 5 %
        settled = dropped = extra = 0
        for line in lines:
            try:
                record = loads(line)
            except orjson.JSONDecodeError:
                return Stretch(settled, dropped, extra, line, _bad_line(line))
            if type(record) is not dict:
                return Stretch(settled, dropped, extra, line, _bad_line(line))
            kept: object = record
            try:
                returned = forward(record)
                if returned is not None:
                    kept = returned
                if type(kept) is dict:  # the usual case, without a further call
                    encoded = dumps(kept, None, DUMP_OPTIONS)
                    for value in kept.values():  # searching for "null" costs 1 ns a byte
                        kind = type(value)
                        if kind is not str and kind is not int and kind not in _NEVER_NAN:
                            if b"null" in encoded:
                                finite(encoded, kept)
                            break
                else:
                    encoded = encode_outcome(kept, record)
                    extra += encoded.count(b"\n") - 1 if encoded else 0
            except interrupts as error:
                return Stretch(settled, dropped, extra, line, interrupt=error)
            except BaseException as error:  # noqa: BLE001 - user code may raise anything
                return Stretch(settled, dropped, extra, line, failure_of(_made_clear(error, kept)))
            if encoded:
                output += encoded
            else:
                dropped += 1
            settled += 1
            if clock() >= until:  # records of microseconds may be followed by ones of seconds
                break
        return Stretch(settled, dropped, extra)

    return settle


def settle_one(settle: Settle, line: bytes) -> Outcome:
    """Settle a single line."""
    output = bytearray()
    stretch = settle(iter((line,)), output, math.inf)
    if stretch.interrupt is not None:
        raise stretch.interrupt
    return bytes(output) if stretch.line is None else stretch.failure


def _made_clear(error: BaseException, kept: object) -> BaseException:
    """Return ``error``; if it is ours for a result that is no JSON, one that says where."""
    trace = error.__traceback__
    if isinstance(error, orjson.JSONEncodeError) and trace is not None and trace.tb_next is None:
        return unencodable(kept, str(error))
    return error  # of the operator, which may use orjson itself


def async_settler(operator: Operator) -> Callable[[bytes], Awaitable[Outcome]]:
    """Return the coroutine function that settles one line."""
    forward = record_function(operator)

    async def settle(line: bytes) -> Outcome:
        try:
            record = decode(line)
        except ValueError:
            return _bad_line(line)
        try:
            return encode_outcome(await forward(record), record)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return failure_of(error)
        except BaseException as error:  # noqa: BLE001 - user code may raise anything
            return failure_of(error)

    return settle


def _bad_line(line: bytes) -> Failure | None:
    if not line or line.isspace():
        return None
    try:
        decode(line)
    except ValueError as error:
        return Failure("InvalidLine", str(error), "")
    return Failure("InvalidLine", "no record", "")  # pragma: no cover - decode() refused it before


def failure_of(error: BaseException) -> Failure:
    """Return the failure that an exception from user code stands for."""
    name = type(error).__name__
    if isinstance(error, (ContractError, UnencodableError)):
        return Failure("InvalidResult", f"{_message(error)}", "", error)
    frames = error.__traceback__.tb_next if error.__traceback__ else None  # less our own
    try:
        lines = traceback.format_exception(type(error), error, frames)
        text = "".join(lines)[-_MAX_TEXT:].encode(errors="backslashreplace").decode()
    except Exception:  # noqa: BLE001 - an exception whose own text cannot be made
        text = f"{name} (its text cannot be shown)\n"
    return Failure(name, _message(error), text, error)


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - __str__ is user code as well
        text = "its message cannot be shown"
    return text[:_MAX_TEXT].encode(errors="backslashreplace").decode()


class Failed(NamedTuple):
    """A failure and where in the input it happened.

    Attributes:
        offset: Byte position of the line in the input.
        line: The input line.
        failure: What happened.
    """

    offset: int
    line: bytes
    failure: Failure


def error_line(failed: Failed, operator: str, position: int) -> bytes:
    """Return the line that a segment keeps of a failure.

    Keys: offset, position (of the record in its span), operator, exception, message, traceback,
    input (the record; the raw text, cut at 64 KB, where it is none).
    """
    return orjson.dumps(
        {
            "offset": failed.offset,
            "position": position,
            "operator": operator,
            "exception": failed.failure.exception,
            "message": failed.failure.message,
            "traceback": failed.failure.traceback_text,
            "input": _input_of(failed.line),
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )


def _input_of(line: bytes) -> object:
    try:
        return decode(line)
    except ValueError:
        return line[:_MAX_RAW_BYTES].decode(errors="backslashreplace")
