"""RunMonitor: stop a step whose run has ended, or is being terminated."""

import time
from typing import Final

import dagster as dg

from dagster_dataops.assets.runtime.messenger import Messenger
from dagster_dataops.assets.runtime.step_context import StepContext, run_of

_SECONDS: Final = 2.0  # between two queries


class RunMonitor:
    """Returns a reason to stop once the run of the step has ended, or is being terminated.

    A step process outlives a killed run worker. The run is then marked as failed and may be
    re-executed while the orphaned step still writes. The status is queried in the messenger's
    thread; an answer takes effect from the next call on.
    """

    def __init__(self, context: StepContext, messenger: Messenger) -> None:
        self._run_id = run_of(context).run_id
        self._instance = context.instance
        self._messenger = messenger
        self._next = time.monotonic() + _SECONDS
        self._reason: str | None = None

    def __call__(self) -> str | None:
        """Return the reason to stop, or ``None``."""
        if time.monotonic() >= self._next and not self._messenger.busy:
            self._next = time.monotonic() + _SECONDS
            self._messenger.send(self._ask)
        return self._reason

    def _ask(self) -> None:
        run = self._instance.get_run_by_id(self._run_id)
        if run is None:
            return
        if run.is_finished:
            self._reason = f"its run {self._run_id} has ended with status {run.status.value}"
        elif run.status is dg.DagsterRunStatus.CANCELING:
            self._reason = f"its run {self._run_id} is being terminated"
