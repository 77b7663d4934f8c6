"""Settle input lines with ``async def`` operators, within their time limit."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from dagster_dataops.concurrency.stepping import run_steps_async
from dagster_dataops.datasets.lines import Line
from dagster_dataops.execution.records.batch_settle import BatchSettler, Pause
from dagster_dataops.execution.records.finished_records import Finished
from dagster_dataops.execution.records.lifecycle import opened, part_times
from dagster_dataops.execution.records.record_failures import (
    Failure,
    Outcome,
    failure_of_line,
    in_part,
    raised,
)
from dagster_dataops.execution.records.retries import Retries
from dagster_dataops.execution.timeouts.event_loop import event_loop, run_through, within
from dagster_dataops.execution.timeouts.record_timeout import (
    Forward,
    RecordTimeout,
    Stuck,
    TooManyStuckError,
)
from dagster_dataops.operators.bound_methods import record_function
from dagster_dataops.operators.chains.chain_calls import Mark, PartTimes
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.outcomes.dispositions import USUAL
from dagster_dataops.operators.outcomes.record_context import OperatorContext, StopRun, Tally
from dagster_dataops.operators.outcomes.return_contract import FAILED_PART, encode_outcome
from dagster_dataops.records import Record, decode


@contextmanager
def calls_in_a_loop(
    operator: Operator, context: OperatorContext | None, times: PartTimes | None
) -> Iterator[Forward]:
    """Yield the operator, open, as a plain function that runs each call in one event loop."""
    with event_loop() as loop:
        run = partial(run_through, loop)
        with opened(operator, run, context) as own:
            call = _limited(own, context, times)
            yield lambda record: run(call(record))


def _limited(
    operator: Operator, context: OperatorContext | None, times: PartTimes | None
) -> Callable[[Record], Coroutine[Any, Any, object]]:
    """Return ``forward`` with the time limit of the operator's settings."""
    forward = record_function(operator, context, times)
    settings = operator.__dataops__.resolved
    if settings.timeout is None:
        return forward
    limit, stuck = settings.timeout, Stuck(settings.max_workers)
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


def async_settler(  # noqa: C901 - two short coroutines
    operator: Operator, context: OperatorContext | None = None, retries: Retries | None = None
) -> Callable[[bytes, Tally], Awaitable[Outcome]]:
    """Return the coroutine function that settles one line, as `settling` does.

    It adds to the given tally, and raises `TooManyStuckError` if too many coroutines are still
    running although they were cancelled.

    Args:
        operator: An open operator.
        context: What was given to its ``open``.
        retries: Further tries of failed records; by default those of the operator's settings.
    """
    retries = retries or Retries(operator.__dataops__.resolved)
    times = part_times(operator)
    forward = _limited(operator, context, times)

    async def attempt(line: bytes, tally: Tally) -> Outcome:
        try:
            record = decode(line)
        except ValueError:
            return failure_of_line(line)
        if context is not None:
            tally.begin()
        try:
            encoded, disposition = encode_outcome(await forward(record), record)
        except BaseException as error:
            if isinstance(error, (TooManyStuckError, StopRun)) or _is_cancelled(error):
                raise
            return raised(error)
        if disposition is not USUAL:
            tally.unusual.append((0, disposition))
        return encoded

    async def settle(line: bytes, tally: Tally) -> Outcome:
        tally.used = context is not None
        tally.measure = None if times is None else times.take
        outcome = await attempt(line, tally)
        if isinstance(outcome, Failure):
            outcome = await retries.again_async(outcome, lambda: attempt(line, tally))
        if isinstance(outcome, Failure):
            return in_part(outcome, operator)
        return outcome

    return settle


def async_batch_settler(
    operator: Operator, context: OperatorContext | None, retries: Retries
) -> Callable[[list[Line]], Awaitable[list[Finished]]]:
    """Return the coroutine function that settles a batch.

    Args:
        operator: An open operator.
        context: What was given to its ``open``.
        retries: Further tries of failed records.
    """
    times = part_times(operator)
    forward = _limited(operator, context, times)

    def is_interrupt(error: BaseException) -> bool:
        return isinstance(error, (TooManyStuckError, StopRun)) or _is_cancelled(error)

    async def settle(lines: list[Line]) -> list[Finished]:
        tally = Tally()
        tally.used = context is not None
        tally.measure = None if times is None else times.take

        def do(step: Any) -> Awaitable[object]:
            if isinstance(step, Pause):
                return retries.pause_async(step.seconds)
            if context is not None:
                tally.begin()
            return forward(step)

        steps = BatchSettler(operator, retries, tally).steps(lines)
        return await run_steps_async(steps, do, is_interrupt)

    return settle


def _is_cancelled(error: BaseException) -> bool:
    """Return whether ``error`` cancels the current task; the operator may raise the same class."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
