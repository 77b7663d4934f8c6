"""End a run that is terminated, whatever its retry policy.

Dagster takes an interrupt of a step with a retry policy for a failure, and tries the step again. If
all steps run in the process of the run, it also begins the other steps. So a run would go on that
somebody wants to end, and would pay for further calls of models.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import dagster as dg

from dagster_dataops.assets.runtime.step_context import StepContext, is_direct, run_of
from dagster_dataops.errors import RunStoppedError

_REASON: Final = (
    "the run is being terminated. What is finished is kept: a re-execution continues from there"
)
_interrupted: Final[set[str]] = set()  # runs of this process whose step was interrupted


@contextmanager
def ended_by_interrupts(context: StepContext) -> Iterator[None]:
    """Run the body of a step; an interrupt ends the step for good.

    Raises:
        dg.Failure: The run is being terminated, or was while the body ran. It allows no retry.
        BaseException: The interrupt itself, if the step has no retry policy.
    """
    run = run_of(context).run_id
    is_retry = not is_direct(context) and bool(context.retry_number)
    if run in _interrupted or (is_retry and is_canceling(context)):
        raise _failure()
    try:
        yield
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError) as interrupt:
        _interrupted.add(run)
        if context.op_def.retry_policy is None:
            raise
        raise _failure() from interrupt
    except RunStoppedError as stopped:
        if is_canceling(context):
            raise _failure() from stopped
        raise


def is_canceling(context: StepContext) -> bool:
    """Return whether somebody has asked to terminate the run."""
    run = context.instance.get_run_by_id(run_of(context).run_id)
    return run is not None and run.status is dg.DagsterRunStatus.CANCELING


def _failure() -> dg.Failure:
    return dg.Failure(_REASON, allow_retries=False)
