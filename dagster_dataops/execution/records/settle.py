"""Settling: one input line in, its encoded outcome or its failure out, the same in every mode.

The only place where user code is called on a record, and so the only one that catches whatever
it raises.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

import orjson

from dagster_dataops.execution.records.record_failures import (
    Failure,
    Outcome,
    failure_of_line,
    in_full,
    raised,
)
from dagster_dataops.execution.records.retries import Retries, retries_of
from dagster_dataops.execution.timeouts.record_timeout import Forward, TooManyStuckError
from dagster_dataops.operators.bound_methods import record_function
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.return_contract import encode_outcome
from dagster_dataops.records import (
    DUMP_OPTIONS,
    NEVER_NAN,
    Record,
    check_finite,
    unencodable,
)

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


# Settles lines into a buffer until one becomes no records, or a monotonic time is over.
Settle: TypeAlias = Callable[[Iterator[bytes], bytearray, float], Stretch]


@contextmanager
def settling(
    operator: Operator,
    interrupts: Interrupts,
    around: Callable[[Forward], Forward] | None = None,
    retries: Retries | None = None,
) -> Iterator[Settle]:
    """Yield the function that settles lines, for the thread that calls this.

    Args:
        operator: A record operator; an ``async def`` one runs in an event loop of its own, which
            keeps its time limit.
        interrupts: What may be raised into the operator from outside, by a signal; it passes
            through and is nobody's failure.
        around: Puts something around every call of the operator, such as a time limit. Further
            tries are calls of their own, the pauses before them are none.
        retries: Further tries of failed records; without it what the operator's settings say,
            with pauses that a signal's exception ends.
    """
    around = around or _as_it_is
    settings = operator.__dataops__.resolved
    retries = retries or retries_of(settings)
    forward = record_function(operator)
    if not operator.__dataops__.spec.asynchronous:
        yield _retrying(_settler(around(forward), interrupts), retries, interrupts)
        return
    from dagster_dataops.execution.records.async_settle import (
        calls_in_a_loop,  # asyncio takes its time
    )

    interrupts = (*interrupts, TooManyStuckError)
    with calls_in_a_loop(operator) as call:
        yield _retrying(_settler(around(call), interrupts), retries, interrupts)


def _as_it_is(forward: Forward) -> Forward:
    return forward


def _retrying(settle: Settle, retries: Retries | None, interrupts: Interrupts) -> Settle:
    """Return ``settle`` with further tries, and with the texts of what fails in the end.

    It is in no record's way that did not fail.
    """

    def settle_retrying(lines: Iterator[bytes], output: bytearray, until: float) -> Stretch:
        stretch = settle(lines, output, until)
        failure, line = stretch.failure, stretch.line
        if failure is None or line is None:
            return stretch
        if retries is None or not retries.worthwhile(failure):
            return stretch._replace(failure=in_full(failure))
        try:
            outcome = retries.again(failure, lambda: settle_one(settle, line))
        except interrupts as error:
            return stretch._replace(failure=None, interrupt=error)
        if isinstance(outcome, Failure):
            return stretch._replace(failure=in_full(outcome))
        output += outcome or b""
        return Stretch(
            stretch.settled + 1,
            stretch.dropped + (not outcome),
            stretch.extra + (outcome.count(b"\n") - 1 if outcome else 0),
        )

    return settle_retrying


def _settler(forward: Callable[[Record], object], interrupts: Interrupts) -> Settle:  # noqa: C901, PLR0915 - see settle()
    loads, dumps, clock = orjson.loads, orjson.dumps, time.monotonic

    def settle(lines: Iterator[bytes], output: bytearray, until: float) -> Stretch:  # noqa: C901, PLR0912 - each call a record costs 5 %
        settled = dropped = extra = 0
        for line in lines:
            try:
                record = loads(line)
            except orjson.JSONDecodeError:
                return Stretch(settled, dropped, extra, line, failure_of_line(line))
            if type(record) is not dict:
                return Stretch(settled, dropped, extra, line, failure_of_line(line))
            kept: object = record
            try:
                kept = forward(record)
                if kept is None:
                    kept = record
                if type(kept) is dict:  # the usual case, without a further call
                    encoded = dumps(kept, None, DUMP_OPTIONS)
                    for value in kept.values():
                        kind = type(value)
                        if kind is not str and kind is not int and kind not in NEVER_NAN:
                            check_finite(encoded, kept)
                            break
                else:
                    encoded = encode_outcome(kept, record)
                    extra += len(kept) - 1 if encoded and isinstance(kept, list) else 0
            except interrupts as error:
                return Stretch(settled, dropped, extra, line, interrupt=error)
            except BaseException as error:  # noqa: BLE001 - user code may raise anything
                return Stretch(settled, dropped, extra, line, raised(_made_clear(error, kept)))
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
