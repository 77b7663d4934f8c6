"""Calls: an operator that is open for calls in one thread, and what these calls report."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.calling import (
    Around,
    Interrupts,
    calling_each,
    calling_once,
)
from dagster_dataops.execution.records.retries import Retries
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.settings import ResolvedSettings
from dagster_dataops.operators.outcomes.record_context import Tally


class Calls(NamedTuple):
    """An operator that is open for calls in one thread, and what these calls report.

    Attributes:
        operator: The operator.
        settings: Its settings.
        call: Calls it for lines.
        breaker: Counts failures; the failure that opens it ends the range.
        retries: Further tries of failed records.
        tally: Counts and dispositions of the records of the current span.
    """

    operator: Operator
    settings: ResolvedSettings
    call: Any  # a `CallEach`, or the `CallOnce` of an operator that takes batches
    breaker: Breaker
    retries: Retries
    tally: Tally


@contextmanager
def opened_calls(
    operator: Operator,
    interrupts: Interrupts,
    tally: Tally,
    around: Around | None = None,
) -> Iterator[Calls]:
    """Yield an operator open for calls, with failures and tries of its own.

    Raises:
        OperatorOpenError: The operator cannot be opened.
    """
    settings = operator.__dataops__.resolved
    breaker = Breaker(settings.stop_after_failures, operator=operator)
    retries = Retries(settings, breaker=breaker)
    calling: Callable[..., Any] = calling_once if operator.__dataops__.spec.batch else calling_each
    with calling(operator, interrupts, around, retries, tally) as call:
        yield Calls(operator, settings, call, breaker, retries, tally)
