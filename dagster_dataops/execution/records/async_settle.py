"""Settle input lines with ``async def`` operators, within their time limit."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from dagster_dataops.execution.records.record_failures import (
    Failure,
    Outcome,
    failure_of_line,
    in_full,
    raised,
)
from dagster_dataops.execution.records.retries import Retries, retries_of
from dagster_dataops.execution.timeouts.event_loop import event_loop, run_through, within
from dagster_dataops.execution.timeouts.record_timeout import Forward, Stuck, TooManyStuckError
from dagster_dataops.operators.bound_methods import record_function
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.return_contract import encode_outcome
from dagster_dataops.records import Record, decode


@contextmanager
def calls_in_a_loop(operator: Operator) -> Iterator[Forward]:
    """Yield the operator as a plain function that runs each call in one event loop."""
    call = _limited(operator)
    with event_loop() as loop:
        yield lambda record: run_through(loop, call(record))


def _limited(operator: Operator) -> Callable[[Record], Coroutine[Any, Any, object]]:
    """Return ``forward`` with the time limit of the operator's settings."""
    forward = record_function(operator)
    settings = operator.__dataops__.resolved
    if settings.timeout is None:
        return forward
    limit, stuck = settings.timeout, Stuck(settings.max_workers)
    return lambda record: within(limit, forward(record), stuck)


def async_settler(
    operator: Operator, retries: Retries | None = None
) -> Callable[[bytes], Awaitable[Outcome]]:
    """Return the coroutine function that settles one line, as `settling` does.

    It raises `TooManyStuckError` if too many coroutines keep running after they were cancelled.
    """
    retries = retries or retries_of(operator.__dataops__.resolved)
    forward = _limited(operator)

    async def attempt(line: bytes) -> Outcome:
        try:
            record = decode(line)
        except ValueError:
            return failure_of_line(line)
        try:
            return encode_outcome(await forward(record), record)
        except TooManyStuckError:
            raise
        except BaseException as error:
            if _is_cancelled(error):
                raise
            return raised(error)

    async def settle(line: bytes) -> Outcome:
        outcome = await attempt(line)
        if retries is not None and isinstance(outcome, Failure) and retries.worthwhile(outcome):
            outcome = await retries.again_async(outcome, lambda: attempt(line))
        return in_full(outcome) if isinstance(outcome, Failure) else outcome

    return settle


def _is_cancelled(error: BaseException) -> bool:
    """Return whether ``error`` cancels the current task; the operator may raise the same class."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
