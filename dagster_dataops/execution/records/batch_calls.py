"""Call operators with batches in this thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dagster_dataops.concurrency.stepping import run_steps
from dagster_dataops.execution.records.batch_settle import BatchSettler, Pause, SettleBatch
from dagster_dataops.execution.records.retries import Retries
from dagster_dataops.execution.records.settle import (
    ENDS_OF_RUN,
    Around,
    Interrupts,
    opened_call,
)
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.outcomes.record_context import Tally


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
    interrupts = (*interrupts, *ENDS_OF_RUN)
    settler = BatchSettler(operator, retries, tally)

    def is_interrupt(error: BaseException) -> bool:
        return isinstance(error, interrupts)

    with opened_call(operator, around, tally) as call:

        def do(step: Any) -> object:
            return retries.pause(step.seconds) if isinstance(step, Pause) else call(step)

        yield lambda lines: run_steps(settler.steps(lines), do, is_interrupt)
