"""What a step is to run, remembered by its context: a body says no more than `run(context)`."""

from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import dagster as dg

from dagster_dataops.datasets.dataset import JsonlDataset

StepContext: TypeAlias = dg.AssetExecutionContext | dg.OpExecutionContext
WorkEvent: TypeAlias = dg.MaterializeResult[JsonlDataset] | dg.AssetCheckResult


class Work(Protocol):
    """Operators that a step may run."""

    def run(self, context: StepContext, dataops: Any) -> Iterator[WorkEvent]:
        """Run what the step has selected, in order; yield the events of each as it finishes.

        Args:
            context: Of the step.
            dataops: A `DataOpsResource`: where and how.
        """
        ...


_assigned: WeakKeyDictionary[StepContext, Work] = WeakKeyDictionary()


def assign(context: StepContext, work: Work) -> None:
    """Remember what the step of ``context`` is to run, for as long as the context lives."""
    _assigned[context] = work


def assigned(context: StepContext) -> Work:
    """Return what the step of ``context`` is to run.

    Raises:
        dg.DagsterInvariantViolationError: Nobody has said.
    """
    work = _assigned.get(context)
    if work is None:
        text = (
            "DataOpsResource.run(context) does not know what to run here. Decorate the function "
            "with @dataops_assets(...), or say what: run(context, plan_pipeline(ppl, source=...)). "
            "To run one operator over datasets of your own there is run_operator(...)"
        )
        raise dg.DagsterInvariantViolationError(text)
    return work
