"""Map a step's context to the operators of the step, so that its body only calls `run(context)`.

In a unit test that calls an asset, with a context of `dg.build_asset_context`, there is no run.
`run_of` then makes one up, so that the same code works there.
"""

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any, Final, Protocol, TypeAlias
from uuid import uuid4
from weakref import WeakKeyDictionary

import dagster as dg

from dagster_dataops.assets.metadata.metadata_keys import REFRESH_TAG, RETRY_TAG

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
_made_up: WeakKeyDictionary[StepContext, dg.DagsterRun] = WeakKeyDictionary()
_RESUME_TAGS: Final = ("dagster/is_resume_retry", "dagster/is_asset_resume_retry")
_NO_RUN: Final = "EPHEMERAL"  # the run id of every context of a direct call


def assign(context: StepContext, work: Work) -> None:
    """Assign work to the step of ``context``, as long as the context exists."""
    _assigned[context] = work
    _made_up.pop(context, None)  # each call of an asset with the same context is another run


def is_direct(context: StepContext) -> bool:
    """Return whether an asset or op is called in Python, such as by a unit test, without a run."""
    return bool(_op_context(context).run_id == _NO_RUN)


def _op_context(context: Any) -> Any:
    return getattr(context, "op_execution_context", context)


def run_of(context: StepContext) -> dg.DagsterRun:
    """Return the run of a step; of a direct call one with a random id and the context's tags."""
    if not is_direct(context):
        return context.run
    run = _made_up.get(context)
    if run is None:
        tags = dict(_op_context(context).run_tags)
        run = _made_up[context] = dg.DagsterRun("direct_call", run_id=str(uuid4()), tags=tags)
    return run


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


_column_texts: WeakKeyDictionary[StepContext, dict[dg.AssetKey, Mapping[str, str]]] = (
    WeakKeyDictionary()
)


def describe_columns(context: StepContext, key: dg.AssetKey, texts: Mapping[str, str]) -> None:
    """Keep what the columns of an asset are, as long as the context exists."""
    _column_texts.setdefault(context, {})[key] = texts


def column_texts(context: StepContext, key: dg.AssetKey | None) -> Mapping[str, str]:
    """Return what `describe_columns` kept of an asset; nothing if there is nothing."""
    return {} if key is None else _column_texts.get(context, {}).get(key, {})


def refreshes(context: StepContext) -> bool:
    """Return whether a step runs in the refresh job."""
    return run_of(context).tags.get(REFRESH_TAG) == "true"


def retries_failed_records(context: StepContext) -> bool:
    """Return whether a step runs in the job that retries failed records."""
    return run_of(context).tags.get(RETRY_TAG) == "true"


def selects(context: StepContext, key: dg.AssetKey) -> bool:
    """Return whether a step makes an asset; an op makes all."""
    return not isinstance(context, dg.AssetExecutionContext) or key in context.selected_asset_keys


def runs_back(context: StepContext) -> Iterator[dg.DagsterRun]:
    """Yield the run of a step, the run that it re-executes, and so on to the first known one."""
    run: dg.DagsterRun | None = run_of(context)
    seen = set()
    while run is not None and run.run_id not in seen:
        yield run
        seen.add(run.run_id)
        parent = run.parent_run_id
        run = None if parent is None else context.instance.get_run_by_id(parent)


def continued_runs(context: StepContext) -> frozenset[str]:
    """Return the runs that this run re-executes from failure.

    A result that one of them published just before it died is reused.
    """
    resumes = takewhile(lambda run: _resumes(run.tags), runs_back(context))
    return frozenset(run.parent_run_id for run in resumes if run.parent_run_id is not None)


def _resumes(tags: Mapping[str, str]) -> bool:
    return any(tags.get(tag) == "true" for tag in _RESUME_TAGS)
