"""Ticker: show progress, sync the checkpoint and check for a stop request."""

import time
from collections.abc import Callable
from typing import Final

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.errors import RunStoppedError
from dagster_dataops.execution.progress import Progress, ProgressState

_TICK_SECONDS: Final = 0.1
_STOP_CHECK_SECONDS: Final = 1.0


class Ticker:
    """Shows progress, syncs a checkpoint and checks for a stop request.

    Args:
        name: Qualified name of the operator, for errors.
        state: Return the present progress.
        progress: Shows it.
        should_stop: Return a reason to stop, or ``None``; called once a second.
        checkpoint: Synced when a sync is due; ``None`` if there is none.
    """

    def __init__(
        self,
        name: str,
        state: Callable[[], ProgressState],
        progress: Progress,
        should_stop: Callable[[], str | None],
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._name = name
        self._state = state
        self._progress = progress
        self._should_stop = should_stop
        self._checkpoint = checkpoint
        self._next_tick = 0.0
        self._next_stop_check = 0.0

    def tick(self) -> None:
        """Do every due action, at most ten times a second.

        Raises:
            RunStoppedError: A stop was requested.
            StorageError: A sync failed.
        """
        now = time.monotonic()
        if now >= self._next_tick:
            self._next_tick = now + _TICK_SECONDS
            self.tick_at(now)

    def tick_at(self, now: float) -> None:
        """Do every action that is due at ``now``, a monotonic time; raises as `tick` does."""
        if self._checkpoint is not None:
            self._checkpoint.sync_if_due(now)
        self._progress.update(self._state())
        if now >= self._next_stop_check:
            self._next_stop_check = now + _STOP_CHECK_SECONDS
            reason = self._should_stop()
            if reason is not None:
                raise RunStoppedError(self._name, reason)
