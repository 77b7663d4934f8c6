"""RunMonitor: notices that a step's run has ended without it."""

import time
from typing import Final

from dagster_dataops.assets.runtime.messenger import Messenger
from dagster_dataops.assets.runtime.step_context import StepContext

_SECONDS: Final = 2.0  # between two questions


class RunMonitor:
    """Stops a step whose run has ended without it.

    A step process outlives a run worker that was killed; the run is then marked as failed, and
    may be executed again while the orphan still writes. Dagster is asked beside the work: each
    answer counts from the next call on, and none for as long as its database is away.

    Args:
        context: Of the step.
        messenger: Who asks.
    """

    def __init__(self, context: StepContext, messenger: Messenger) -> None:
        self._run_id = context.run.run_id
        self._instance = context.instance
        self._messenger = messenger
        self._next = time.monotonic() + _SECONDS
        self._reason: str | None = None

    def __call__(self) -> str | None:
        """Return why to stop, or ``None``."""
        if time.monotonic() >= self._next and not self._messenger.busy:
            self._next = time.monotonic() + _SECONDS
            self._messenger.send(self._ask)
        return self._reason

    def _ask(self) -> None:
        run = self._instance.get_run_by_id(self._run_id)
        if run is not None and run.is_finished:
            self._reason = f"its run {self._run_id} has ended with status {run.status.value}"
