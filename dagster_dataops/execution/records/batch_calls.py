"""Call operators with batches in this thread."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dagster_dataops.concurrency.stepping import run_steps
from dagster_dataops.execution.records.batch_settle import BatchSettler, Pause, SettleBatch
from dagster_dataops.execution.records.lifecycle import (
    context_of,
    opened,
    part_times,
    run_alone,
)
from dagster_dataops.execution.records.retries import Retries
from dagster_dataops.execution.records.settle import Around, Interrupts, tallied
from dagster_dataops.execution.timeouts.record_timeout import TooManyStuckError
from dagster_dataops.operators.bound_methods import record_function
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.outcomes.record_context import StopRun, Tally


@contextmanager
def batch_settling(
    operator: Operator,
    interrupts: Interrupts,
    around: Around | None = None,
    retries: Retries | None = None,
    tally: Tally | None = None,
) -> Iterator[SettleBatch]:
    """Yield the function that settles a batch in this thread; open the operator before.

    The arguments are those of `settling`. ``around`` covers a call with a batch.

    Raises:
        OperatorOpenError: The operator cannot be opened.
    """
    retries, tally = retries or Retries(operator.__dataops__.resolved), tally or Tally()
    interrupts = (*interrupts, StopRun)
    context, times = context_of(operator), part_times(operator)
    tally.measure = None if times is None else times.take
    settler = BatchSettler(operator, retries, tally)

    def settle_with(forward: Callable[[Any], object]) -> SettleBatch:
        call: Callable[[Any], object] = tallied(forward, tally, context)
        call = call if around is None else around(call)

        def do(step: Any) -> object:
            return retries.pause(step.seconds) if isinstance(step, Pause) else call(step)

        def is_interrupt(error: BaseException) -> bool:
            return isinstance(error, interrupts)

        return lambda lines: run_steps(settler.steps(lines), do, is_interrupt)

    if not operator.__dataops__.spec.asynchronous:
        with opened(operator, run_alone, context) as own:
            yield settle_with(record_function(own, context, times))
        return
    from dagster_dataops.execution.records.async_settle import calls_in_a_loop  # slow to import

    interrupts = (*interrupts, TooManyStuckError)
    with calls_in_a_loop(operator, context, times) as call:
        yield settle_with(call)
