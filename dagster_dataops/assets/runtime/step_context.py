"""Map a step's context to the operators of the step, so that its body only calls `run(context)`."""

from collections.abc import Iterator
from typing import Any, Final, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import dagster as dg

StepContext: TypeAlias = dg.AssetExecutionContext | dg.OpExecutionContext
StepEvent: TypeAlias = dg.MaterializeResult[Any] | dg.AssetCheckResult


class Work(Protocol):
    """The operators of a step."""

    def run(self, context: StepContext, dataops: Any) -> Iterator[StepEvent]:
        """Run the selected operators in order and yield the events of each as it finishes.

        ``dataops`` is the `DataOpsResource`, which a module above this one defines.
        """
        ...


_assigned: WeakKeyDictionary[StepContext, Work] = WeakKeyDictionary()


def assign(context: StepContext, work: Work) -> None:
    """Assign work to the step of ``context``, as long as the context exists."""
    _assigned[context] = work


def assigned(context: StepContext) -> Work:
    """Return the work that was assigned to the step of ``context``.

    Raises:
        dg.DagsterInvariantViolationError: No work was assigned.
    """
    work = _assigned.get(context)
    if work is None:
        text = (
            "DataOpsResource.run(context) has no operators to run in this step. Decorate the "
            "function with @dataops_assets(...), or pass them: run(context, plan_pipeline(ppl, "
            "source=...)). To run one operator over your own datasets, use run_operator(...)"
        )
        raise dg.DagsterInvariantViolationError(text)
    return work


REFRESH_TAG: Final = "dagster_dataops/refresh"
RETRY_TAG: Final = "dagster_dataops/retry_failed_records"


def refreshes(context: StepContext) -> bool:
    """Return whether a step runs in the refresh job."""
    return context.run.tags.get(REFRESH_TAG) == "true"


def retries_failed_records(context: StepContext) -> bool:
    """Return whether a step runs in the job that retries failed records."""
    return context.run.tags.get(RETRY_TAG) == "true"


def selects(context: StepContext, key: dg.AssetKey) -> bool:
    """Return whether a step makes an asset; an op makes all."""
    return not isinstance(context, dg.AssetExecutionContext) or key in context.selected_asset_keys


def runs_back(context: StepContext) -> Iterator[dg.DagsterRun]:
    """Yield the run of a step, the run that it re-executes, and so on to the first known one."""
    run: dg.DagsterRun | None = context.run
    seen = set()
    while run is not None and run.run_id not in seen:
        yield run
        seen.add(run.run_id)
        parent = run.parent_run_id
        run = None if parent is None else context.instance.get_run_by_id(parent)
