"""Settle input lines with ``async def`` operators, within their time limit."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from dagster_dataops.execution.records.lifecycle import opened
from dagster_dataops.execution.records.record_failures import (
    Failure,
    Outcome,
    failure_of_line,
    raised,
)
from dagster_dataops.execution.records.retries import Retries
from dagster_dataops.execution.timeouts.event_loop import event_loop, run_through, within
from dagster_dataops.execution.timeouts.record_timeout import Forward, Stuck, TooManyStuckError
from dagster_dataops.operators.bound_methods import record_function
from dagster_dataops.operators.dispositions import USUAL
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.record_context import OperatorContext, StopRun, Tally
from dagster_dataops.operators.return_contract import encode_outcome
from dagster_dataops.records import Record, decode


@contextmanager
def calls_in_a_loop(operator: Operator, context: OperatorContext | None) -> Iterator[Forward]:
    """Yield the operator, open, as a plain function that runs each call in one event loop."""
    with event_loop() as loop:
        run = partial(run_through, loop)
        with opened(operator, run, context) as own:
            call = _limited(own, context)
            yield lambda record: run(call(record))


def _limited(
    operator: Operator, context: OperatorContext | None
) -> Callable[[Record], Coroutine[Any, Any, object]]:
    """Return ``forward`` with the time limit of the operator's settings."""
    forward = record_function(operator, context)
    settings = operator.__dataops__.resolved
    if settings.timeout is None:
        return forward
    limit, stuck = settings.timeout, Stuck(settings.max_workers)
    return lambda record: within(limit, forward(record), stuck)


def async_settler(  # noqa: C901 - two short coroutines
    operator: Operator, context: OperatorContext | None = None, retries: Retries | None = None
) -> Callable[[bytes, Tally], Awaitable[Outcome]]:
    """Return the coroutine function that settles one line, as `settling` does.

    It adds to the given tally, and raises `TooManyStuckError` if too many coroutines go on although
    they were cancelled.

    Args:
        operator: An open operator.
        context: What was given to its ``open``.
        retries: Further tries of failed records; by default those of the operator's settings.
    """
    retries = retries or Retries(operator.__dataops__.resolved)
    forward = _limited(operator, context)

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
        outcome = await attempt(line, tally)
        if isinstance(outcome, Failure):
            return await retries.again_async(outcome, lambda: attempt(line, tally))
        return outcome

    return settle


def _is_cancelled(error: BaseException) -> bool:
    """Return whether ``error`` cancels the current task; the operator may raise one of its own."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
