"""Call ``async def`` operators for input lines, within their time limit."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias

from dagster_dataops.datasets.lines import Line
from dagster_dataops.execution.records.call_steps import ENDS_OF_RUN, CallSteps, Pause
from dagster_dataops.execution.records.lifecycle import measured, opened, part_times
from dagster_dataops.execution.records.retries import Retries
from dagster_dataops.execution.records.span_draft import Finished
from dagster_dataops.execution.timeouts.call_task import CallTask, call_maker
from dagster_dataops.execution.timeouts.event_loop import (
    LoopClosedError,
    event_loop,
    run_through,
    within,
)
from dagster_dataops.execution.timeouts.record_timeout import (
    Forward,
    RecordTimeout,
    Stuck,
)
from dagster_dataops.foundation.concurrency.stepping import run_steps_async
from dagster_dataops.operators.bound_methods import change_watch, column_watch, record_function
from dagster_dataops.operators.chains.chain_calls import Mark, PartTimes
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.outcomes.column_watch import ColumnWatch, Patience
from dagster_dataops.operators.outcomes.record_context import OperatorContext, Tally
from dagster_dataops.operators.outcomes.return_contract import FAILED_PART
from dagster_dataops.records import Record

CallAsync: TypeAlias = Callable[[list[Line]], Awaitable[list[Finished]]]


@contextmanager
def calls_in_a_loop(
    operator: Operator,
    context: OperatorContext | None,
    times: PartTimes | None,
    watch: ColumnWatch | None,
) -> Iterator[Forward]:
    """Yield the operator, open, as a plain function that runs each call in one event loop.

    A call that closes the loop fails; the next ones have another loop, and another open operator.
    The call before may have closed it, too, so a call fails only if the loop was new.
    """
    with ExitStack() as stack:
        call: Forward | None = None
        is_used = False

        def called(record: Record) -> object:
            nonlocal call, is_used
            call = call or stack.enter_context(_calls_in_one_loop(operator, context, times, watch))
            was_used, is_used = is_used, True
            try:
                return call(record)
            except LoopClosedError:
                call, is_used = None, False
                with suppress(LoopClosedError):
                    stack.close()
                if not was_used:
                    raise
            return called(record)

        call = stack.enter_context(_calls_in_one_loop(operator, context, times, watch))
        yield called


@contextmanager
def _calls_in_one_loop(
    operator: Operator,
    context: OperatorContext | None,
    times: PartTimes | None,
    watch: ColumnWatch | None,
) -> Iterator[Forward]:
    with event_loop() as loop:
        run = partial(run_through, loop)
        with opened(operator, run, context) as opened_operator:
            call = _limited(opened_operator, context, times, _stuck(opened_operator), watch)
            yield lambda record: run(_made(call(record)))


async def _made(call: Coroutine[Any, Any, object]) -> object:
    return await call_maker()(call)


def _stuck(operator: Operator) -> Stuck:
    return Stuck(operator.__dataops__.resolved.max_workers)


def _limited(
    operator: Operator,
    context: OperatorContext | None,
    times: PartTimes | None,
    stuck: Stuck,
    watch: ColumnWatch | None,
) -> Callable[[Record], Coroutine[Any, Any, object]]:
    """Return ``forward`` with the time limit of the operator's settings."""
    forward = record_function(operator, context, times, watch)
    limit = operator.__dataops__.resolved.timeout
    if limit is None:
        return forward
    if times is None:
        return lambda record: within(limit, forward(record), stuck)

    async def limited(record: Record) -> object:
        failed: list[Mark] = []
        try:
            return await within(limit, forward(record, failed), stuck)
        except RecordTimeout as error:
            if failed:  # the part that was cancelled
                setattr(error, FAILED_PART, failed[0])
            raise

    return limited


def async_callers(
    operator: Operator, context: OperatorContext | None = None, retries: Retries | None = None
) -> Callable[[], CallAsync]:
    """Return the function that makes coroutine functions, which call for lines as `calling_once`.

    Each of them is for one task, and makes one call at a time. It raises `TooManyStuckError` if too
    many coroutines of all tasks are still running although they were cancelled.

    Args:
        operator: An open operator.
        context: What was given to its ``open``.
        retries: Further tries of failed records; by default those of the operator's settings.
    """
    further = retries or Retries(operator.__dataops__.resolved)
    times, stuck, patience = part_times(operator), _stuck(operator), Patience()
    shared = None
    if column_watch(operator) is None and change_watch(operator) is None:
        shared = _limited(operator, context, times, stuck, None)

    def caller() -> CallAsync:
        tally = Tally()
        tally.used = context is not None
        watch = None if shared is not None else column_watch(operator, patience)
        changes = None if shared is not None else change_watch(operator)
        tally.measure = measured(times, watch, changes)
        forward = shared or _limited(operator, context, times, stuck, watch)
        if changes is not None:
            tally.measure_each = changes.take_each
            forward = changes.around_async(forward)
        if watch is not None:
            forward = watch.around_async(forward)
        steps = CallSteps(operator, further, tally).of
        make = call_maker()

        def do(step: Any) -> Awaitable[object]:
            if isinstance(step, Pause):
                return further.pause_async(step.seconds)
            if tally.used:
                tally.begin()
            return make(forward(step))

        return lambda lines: run_steps_async(steps(lines), do, _ends_run)

    return caller


def _ends_run(error: BaseException) -> bool:
    """Return whether an exception of a call is no failure of its record."""
    if not isinstance(error, asyncio.CancelledError):
        return isinstance(error, ENDS_OF_RUN)
    task = asyncio.current_task()  # the operator may raise the same class
    return task.ending if isinstance(task, CallTask) else bool(task and task.cancelling())
