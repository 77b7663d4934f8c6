"""Call an operator for input lines: decode, call, encode the outcome or keep the failure.

It consists of layers: decode, retries, time limit, operator, encode. Layers that the settings do
not need are left out. Together with `async_calling`, which awaits the call, this is the only code
that calls record operators. `calling_each` is a loop over many lines, for operators that take one
record; `calling_once` takes the lines of one call through the steps of `CallSteps`, which further
tries of the loop take as well.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import orjson

from dagster_dataops.execution.records.call_steps import (
    ENDS_OF_RUN,
    CallOnce,
    CallSteps,
    Pause,
)
from dagster_dataops.execution.records.lifecycle import (
    context_of,
    measured,
    opened,
    part_times,
    run_alone,
)
from dagster_dataops.execution.records.record_failures import (
    Failure,
    failure_of_line,
    raised,
)
from dagster_dataops.execution.records.retries import Retries
from dagster_dataops.execution.records.span_draft import Finished
from dagster_dataops.execution.timeouts.record_timeout import Forward
from dagster_dataops.foundation.concurrency.stepping import Steps, run_steps
from dagster_dataops.operators.bound_methods import (
    change_watch,
    column_watch,
    record_function,
    sketched_column,
)
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.outcomes.dispositions import USUAL
from dagster_dataops.operators.outcomes.record_context import Tally
from dagster_dataops.operators.outcomes.return_contract import encode_outcome
from dagster_dataops.records import (
    DUMP_OPTIONS,
    INTEGER_LIMIT,
    NEVER_NAN,
    WITHOUT_FLOATS,
    ValueKeeper,
    check_finite,
    check_integers,
    encode,
)

_DECODED_LINES: Final = 64  # that are decoded at once; they fit into the processor's cache
_NUMBERS: Final = frozenset({int, float})

T = TypeVar("T")
Interrupts: TypeAlias = tuple[type[BaseException], ...]
Around: TypeAlias = Callable[[Forward], Forward]  # wraps every call of an operator


class Stretch(NamedTuple):
    """What a function of `calling_each` did, up to a line without an outcome.

    Attributes:
        finished: Number of lines with an outcome; their records are in the output.
        dropped: Number of these lines that emitted nothing.
        extra: Number of result records beyond one per line.
        line: The line that ended the stretch; ``None`` at the end of the lines or of the time.
        failure: The failure of that line; ``None`` for a blank line.
        interrupt: An exception from outside, such as a signal's, that interrupted that line. Raise
            it when the earlier lines are safe.
    """

    finished: int
    dropped: int
    extra: int
    line: bytes | None = None
    failure: Failure | None = None
    interrupt: BaseException | None = None


# Calls an operator for lines, into a buffer, until one has no outcome or a monotonic time comes.
CallEach: TypeAlias = Callable[[Iterator[bytes], bytearray, float], Stretch]


@contextmanager
def calling_each(
    operator: Operator,
    interrupts: Interrupts,
    around: Around | None = None,
    retries: Retries | None = None,
    tally: Tally | None = None,
) -> Iterator[CallEach]:
    """Open an operator, and yield the function that calls it for lines in this thread.

    Args:
        operator: A record operator that takes one record. An ``async def`` operator runs in its own
            event loop, which applies its time limit.
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
    steps = CallSteps(operator, retries, tally)
    spec, keeper = operator.__dataops__.spec, operator.__dataops__.keeper
    key = "" if spec.asynchronous else spec.kind.recorded_as
    with _opened_call(operator, around, tally, recorded=not key) as call:
        each = _each(call, interrupts, tally, keeper)
        recorded: Forward = call
        if key:
            each = _each_value(call, key, interrupts, tally, keeper)
            recorded = lambda record: {key: call(record)}  # noqa: E731
            column = sketched_column(operator)
            if column is not None and around is None:
                each = _each_of_column(each, key, column, tally)
        run = _runner(recorded, retries, interrupts)

        def try_again(line: bytes, failure: Failure) -> Finished:
            return run(steps.again(line, failure))

        yield _retrying(each, try_again, interrupts, tally)


@contextmanager
def calling_once(
    operator: Operator,
    interrupts: Interrupts,
    around: Around | None = None,
    retries: Retries | None = None,
    tally: Tally | None = None,
) -> Iterator[CallOnce]:
    """Yield the function that calls for a batch, or for one line if the operator takes one record.

    Arguments and errors are those of `calling_each`; ``around`` covers a call with a batch.
    """
    retries, tally = retries or Retries(operator.__dataops__.resolved), tally or Tally()
    steps = CallSteps(operator, retries, tally)
    with _opened_call(operator, around, tally) as call:
        run = _runner(call, retries, (*interrupts, *ENDS_OF_RUN))
        yield lambda lines: run(steps.of(lines))


def _runner(call: Forward, retries: Retries, interrupts: Interrupts) -> Callable[[Steps[T]], T]:
    """Return the function that runs steps in this thread."""

    def do(step: Any) -> object:
        return retries.pause(step.seconds) if isinstance(step, Pause) else call(step)

    def is_interrupt(error: BaseException) -> bool:
        return isinstance(error, interrupts)

    return lambda steps: run_steps(steps, do, is_interrupt)


@contextmanager
def _opened_call(
    operator: Operator, around: Around | None, tally: Tally, *, recorded: bool = True
) -> Iterator[Forward]:
    """Open an operator and yield the function that calls it.

    Other arguments are those of `calling_each`; ``recorded`` is that of `record_function`.
    """
    context, times, watch = context_of(operator), part_times(operator), column_watch(operator)
    changes = change_watch(operator)
    tally.measure = measured(times, watch, changes)
    tally.measure_each = None if changes is None else changes.take_each

    def counted(forward: Forward) -> Forward:
        if context is not None:
            tally.used = True
            forward = tally.around(forward)
        forward = forward if around is None else around(forward)
        forward = forward if changes is None else changes.around(forward)
        return forward if watch is None else watch.around(forward)

    if not operator.__dataops__.spec.asynchronous:
        with opened(operator, run_alone, context) as opened_operator:
            function = record_function(opened_operator, context, times, watch, recorded=recorded)
            yield counted(function)
        return
    from dagster_dataops.execution.records.async_calling import calls_in_a_loop  # slow to import

    with calls_in_a_loop(operator, context, times, watch) as call:
        yield counted(call)


def _retrying(
    call: CallEach,
    try_again: Callable[[bytes, Failure], Finished],
    interrupts: Interrupts,
    tally: Tally,
) -> CallEach:
    """Return ``call`` with further attempts for failed lines, and with the texts of failures."""

    def call_retrying(lines: Iterator[bytes], output: bytearray, until: float) -> Stretch:
        stretch = call(lines, output, until)
        if stretch.failure is None or stretch.line is None:
            return stretch
        try:
            _, outcome, disposition, _ = try_again(stretch.line, stretch.failure)
        except interrupts as error:
            return stretch._replace(failure=None, interrupt=error)
        if isinstance(outcome, Failure):
            return stretch._replace(failure=outcome)
        if disposition is not USUAL:
            tally.unusual.append((stretch.finished, disposition))
        output += outcome or b""
        return Stretch(
            stretch.finished + 1,
            stretch.dropped + (not outcome),
            stretch.extra + (outcome.count(b"\n") - 1 if outcome else 0),
        )

    return call_retrying


def _each(  # noqa: C901, PLR0915 - see call_each()
    forward: Forward, interrupts: Interrupts, tally: Tally, keeper: ValueKeeper | None
) -> CallEach:
    loads, dumps, options, never_nan = orjson.loads, orjson.dumps, DUMP_OPTIONS, NEVER_NAN
    limit = INTEGER_LIMIT
    clock, unusual = time.monotonic, tally.unusual

    def call_each(lines: Iterator[bytes], output: bytearray, until: float) -> Stretch:  # noqa: C901, PLR0912, PLR0915 - each call a record costs 2 %
        finished = dropped = extra = 0
        exact = tally.exact
        for line in lines:
            try:
                record = loads(line)
                if exact and type(record) is dict:
                    for value in record.values():
                        kind = type(value)
                        if kind is not str and kind is not int and kind not in never_nan:
                            if kind is float and -limit < value < limit:
                                continue
                            check_integers(line)
                            break
            except ValueError:
                return Stretch(finished, dropped, extra, line, failure_of_line(line))
            if type(record) is not dict:
                return Stretch(finished, dropped, extra, line, failure_of_line(line))
            try:
                kept = forward(record)
                if kept is None:
                    kept = record
                if type(kept) is dict:  # the usual case: as `encode`, without a further call
                    try:
                        encoded = dumps(kept, None, options)
                    except TypeError:
                        encoded = encode(kept, keeper)  # stores files, or names the value
                    for value in kept.values():
                        kind = type(value)
                        if kind is not str and kind is not int and kind not in never_nan:
                            check_finite(encoded, kept)
                            break
                else:
                    encoded, disposition = encode_outcome(kept, record, keeper)
                    if disposition is not USUAL:
                        unusual.append((finished, disposition))
                        extra += encoded.count(b"\n") - 1 if encoded else 0
            except interrupts as error:
                return Stretch(finished, dropped, extra, line, interrupt=error)
            except BaseException as error:  # noqa: BLE001 - user code may raise anything
                return Stretch(finished, dropped, extra, line, raised(error))
            if encoded:
                output += encoded
            else:
                dropped += 1
            finished += 1
            if clock() >= until:  # quick records may be followed by slow ones
                break
        return Stretch(finished, dropped, extra)

    return call_each


def _each_value(  # noqa: C901, PLR0915 - see call_each()
    forward: Forward, key: str, interrupts: Interrupts, tally: Tally, keeper: ValueKeeper | None
) -> CallEach:
    """Return the loop for an operator whose values are recorded under a key.

    Texts and numbers whose encoding cannot fail wait, and are encoded together.
    """
    loads, clock, never_nan, limit = orjson.loads, time.monotonic, NEVER_NAN, INTEGER_LIMIT

    def call_each(lines: Iterator[bytes], output: bytearray, until: float) -> Stretch:  # noqa: C901, PLR0912, PLR0915 - each call a record costs 2 %
        exact, finished, waiting = tally.exact, 0, list[Any]()
        wait = waiting.append
        try:
            for line in lines:
                try:
                    record = loads(line)
                    if type(record) is not dict:
                        raise ValueError  # noqa: TRY301 - as for what is no JSON
                    if exact:
                        for column in record.values():
                            kind = type(column)
                            if kind is not str and kind is not int and kind not in never_nan:
                                if kind is float and -limit < column < limit:
                                    continue
                                check_integers(line)
                                break
                except ValueError:
                    return Stretch(finished, 0, 0, line, failure_of_line(line))
                try:
                    value: Any = forward(record)
                    kind = type(value)
                    if kind is str:
                        waits = value.isascii()
                    else:
                        waits = (kind is float or kind is int) and -limit < value < limit
                    encoded = b"" if waits else encode({key: value}, keeper)
                except interrupts as error:
                    return Stretch(finished, 0, 0, line, interrupt=error)
                except BaseException as error:  # noqa: BLE001 - user code may raise anything
                    return Stretch(finished, 0, 0, line, raised(error))
                if waits:
                    wait(value)
                else:
                    if waiting:
                        output += value_lines(key, waiting)
                        waiting.clear()
                    output += encoded
                finished += 1
                if clock() >= until:  # quick records may be followed by slow ones
                    break
            return Stretch(finished, 0, 0)
        finally:
            output += value_lines(key, waiting)

    return call_each


def _each_of_column(each: CallEach, key: str, column: str, tally: Tally) -> CallEach:
    """Return the loop for an operator whose values are those of a column; see `sketched_column`.

    The lines are decoded some at a time, and no code of the operator is called. If one of them
    differs from the usual ones, ``each`` does the rest.
    """

    def call_each(lines: Iterator[bytes], output: bytearray, until: float) -> Stretch:
        finished = 0
        while some := list(islice(lines, _DECODED_LINES)):
            values = _column_values(some, column, exact=tally.exact)
            if not values:
                stretch = each(chain(some, lines), output, until)
                return stretch._replace(finished=finished + stretch.finished)
            output += value_lines(key, values)
            finished += len(some)
            if time.monotonic() >= until:
                break
        return Stretch(finished, 0, 0)

    return call_each


def _column_values(lines: list[bytes], column: str, *, exact: bool) -> list[Any]:
    """Return the values of a column: all numbers, or all texts; none if a line is unusual."""
    try:
        records = list(map(orjson.loads, lines))
        values = [record.pop(column) for record in records]
    except (ValueError, TypeError, LookupError, AttributeError):
        return []
    if _NUMBERS.issuperset(map(type, values)):
        usual = min(values) > -INTEGER_LIMIT and max(values) < INTEGER_LIMIT
    else:
        usual = all(type(value) is str and value.isascii() for value in values)
    return values if usual and not (exact and _may_be_inexact(records)) else []


def _may_be_inexact(records: list[dict[str, Any]]) -> bool:
    """Return whether a value is, or may hold, an integer beyond 64 bits."""
    kinds = set(map(type, chain.from_iterable(map(dict.values, records))))
    if kinds <= WITHOUT_FLOATS:  # most often; a loop in Python takes three times as long
        return False
    limit, least = INTEGER_LIMIT, -INTEGER_LIMIT
    for value in chain.from_iterable(map(dict.values, records)):
        kind = type(value)
        if not (least < value < limit if kind is float else kind in WITHOUT_FLOATS):
            return True
    return False


def value_lines(key: str, values: Sequence[Any]) -> bytes:
    """Return a line for each value, which has it under a key, as `encode` writes it."""
    joined = orjson.dumps(values)
    if joined.count(b",") != len(values) - 1:  # there are commas in values
        return b"".join([encode({key: value}) for value in values])
    before = b'{"%b":' % key.encode()
    return before + joined[1:-1].replace(b",", b"}\n" + before) + b"}\n"
