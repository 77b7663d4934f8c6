"""Settle input lines: decode a line, call the operator, encode the outcome or keep the failure.

It consists of layers: decode, retries, time limit, operator, encode. Layers that the settings do
not need are left out. Together with `async_settle`, which awaits the call, this is the only code
that calls record operators, and the only code that catches their exceptions.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeAlias

import orjson

from dagster_dataops.execution.records.lifecycle import (
    context_of,
    opened,
    part_times,
    run_alone,
)
from dagster_dataops.execution.records.record_failures import (
    Failure,
    Outcome,
    failure_of_line,
    in_part,
    raised,
)
from dagster_dataops.execution.records.retries import Retries
from dagster_dataops.execution.timeouts.record_timeout import Forward, TooManyStuckError
from dagster_dataops.operators.bound_methods import record_function
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.outcomes.dispositions import USUAL
from dagster_dataops.operators.outcomes.record_context import StopRun, Tally
from dagster_dataops.operators.outcomes.return_contract import encode_outcome
from dagster_dataops.records import encode

Interrupts: TypeAlias = tuple[type[BaseException], ...]
Around: TypeAlias = Callable[[Forward], Forward]  # wraps every call of an operator
# Exceptions of a call that end the run; no record is blamed for them.
ENDS_OF_RUN: Final = (StopRun, TooManyStuckError)


class Stretch(NamedTuple):
    """The result of settling lines up to a line without an outcome.

    Attributes:
        settled: Number of settled lines; their records are in the output.
        dropped: Number of these lines that emitted nothing.
        extra: Number of result records beyond one per line.
        line: The line that ended the stretch; ``None`` at the end of the lines or of the time.
        failure: The failure of that line; ``None`` for a blank line.
        interrupt: An exception from outside, such as a signal's, that interrupted that line. Raise
            it when the earlier lines are safe.
    """

    settled: int
    dropped: int
    extra: int
    line: bytes | None = None
    failure: Failure | None = None
    interrupt: BaseException | None = None


# Settles lines into a buffer until a line has no outcome, or until a monotonic time.
Settle: TypeAlias = Callable[[Iterator[bytes], bytearray, float], Stretch]


@contextmanager
def settling(
    operator: Operator,
    interrupts: Interrupts,
    around: Around | None = None,
    retries: Retries | None = None,
    tally: Tally | None = None,
) -> Iterator[Settle]:
    """Yield the function that settles lines in this thread; open the operator before.

    Args:
        operator: A record operator. An ``async def`` operator runs in its own event loop, which
            applies its time limit.
        interrupts: Exceptions that signals raise inside the operator. They are not failures of the
            record, and are passed on.
        around: Wraps every call of the operator, such as in a time limit. It does not cover the
            pauses between tries.
        retries: Further tries of failed records; by default those of the operator's settings.
        tally: Receives counts and dispositions.

    Raises:
        OperatorOpenError: The operator cannot be opened.
    """
    retries, tally = retries or Retries(operator.__dataops__.resolved), tally or Tally()
    interrupts = (*interrupts, *ENDS_OF_RUN)
    with opened_call(operator, around, tally) as call:
        yield _retrying(_settler(call, interrupts, tally), retries, interrupts, tally, operator)


@contextmanager
def opened_call(operator: Operator, around: Around | None, tally: Tally) -> Iterator[Forward]:
    """Open an operator and yield the function that calls it; arguments as for `settling`.

    Raises:
        OperatorOpenError: The operator cannot be opened.
    """
    context, times = context_of(operator), part_times(operator)
    tally.measure = None if times is None else times.take

    def counted(forward: Forward) -> Forward:
        if context is not None:
            tally.used = True
            forward = tally.around(forward)
        return forward if around is None else around(forward)

    if not operator.__dataops__.spec.asynchronous:
        with opened(operator, run_alone, context) as own:
            yield counted(record_function(own, context, times))
        return
    from dagster_dataops.execution.records.async_settle import calls_in_a_loop  # slow to import

    with calls_in_a_loop(operator, context, times) as call:
        yield counted(call)


def _retrying(
    settle: Settle, retries: Retries, interrupts: Interrupts, tally: Tally, operator: Operator
) -> Settle:
    """Return ``settle`` with further attempts for failed lines, and with the texts of failures."""

    def settle_retrying(lines: Iterator[bytes], output: bytearray, until: float) -> Stretch:
        stretch = settle(lines, output, until)
        failure, line = stretch.failure, stretch.line
        if failure is None or line is None:
            return stretch
        before, tally.unusual[:] = tally.unusual[:], []
        try:
            outcome = retries.again(failure, lambda: settle_one(settle, line))
        except interrupts as error:
            tally.unusual[:] = before
            return stretch._replace(failure=None, interrupt=error)
        tally.unusual[:] = [*before, *((stretch.settled, one) for _, one in tally.unusual)]
        if isinstance(outcome, Failure):
            return stretch._replace(failure=in_part(outcome, operator))
        output += outcome or b""
        return Stretch(
            stretch.settled + 1,
            stretch.dropped + (not outcome),
            stretch.extra + (outcome.count(b"\n") - 1 if outcome else 0),
        )

    return settle_retrying


def _settler(forward: Forward, interrupts: Interrupts, tally: Tally) -> Settle:  # noqa: C901 - see settle()
    loads, clock, unusual = orjson.loads, time.monotonic, tally.unusual

    def settle(lines: Iterator[bytes], output: bytearray, until: float) -> Stretch:  # noqa: C901, PLR0912 - each call a record costs 2 %
        settled = dropped = extra = 0
        for line in lines:
            try:
                record = loads(line)
            except orjson.JSONDecodeError:
                return Stretch(settled, dropped, extra, line, failure_of_line(line))
            if type(record) is not dict:
                return Stretch(settled, dropped, extra, line, failure_of_line(line))
            try:
                kept = forward(record)
                if kept is None:
                    kept = record
                if type(kept) is dict:  # the usual case, without a further call
                    encoded = encode(kept)
                else:
                    encoded, disposition = encode_outcome(kept, record)
                    if disposition is not USUAL:
                        unusual.append((settled, disposition))
                        extra += encoded.count(b"\n") - 1 if encoded else 0
            except interrupts as error:
                return Stretch(settled, dropped, extra, line, interrupt=error)
            except BaseException as error:  # noqa: BLE001 - user code may raise anything
                return Stretch(settled, dropped, extra, line, raised(error))
            if encoded:
                output += encoded
            else:
                dropped += 1
            settled += 1
            if clock() >= until:  # quick records may be followed by slow ones
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
