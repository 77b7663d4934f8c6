"""Messenger: send log lines and events to Dagster in a thread beside the work.

Dagster's database may be slow or unreachable; the work does not wait for it.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from dagster_dataops.foundation.concurrency.background import Background
from dagster_dataops.foundation.concurrency.fork_safety import may_fork

_LOG: Final = logging.getLogger("dagster_dataops")


class Messenger:
    """Runs calls to Dagster one after another in a daemon thread.

    In a process without other threads, such as a script, it runs them immediately: a thread would
    prevent the fork of worker processes. An exception is logged.
    """

    def __init__(self) -> None:
        self._calls = Background("dataops-messenger", daemon=True)

    @property
    def busy(self) -> bool:
        """Whether a call is running or waiting; calls that are not urgent should then wait."""
        return self._calls.busy

    def send(self, call: Callable[[], object]) -> None:
        """Run ``call`` after those sent before."""
        logged = partial(_run, call)
        if not self.busy and may_fork():
            logged()
        else:
            self._calls.run(logged)

    def wait(self, seconds: float) -> bool:
        """Wait at most ``seconds`` until all calls have run; return whether they have."""
        return self._calls.finish(seconds)

    def finish(self, seconds: float) -> None:
        """Wait at most ``seconds`` until all calls have run, then drop those that still wait."""
        if not self.wait(seconds):
            self._calls.drop()


def _run(call: Callable[[], object]) -> None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - no database error may end the work
        with suppress(Exception):  # the log handler may write to the same database
            _LOG.warning("Could not send to Dagster: %s: %s", type(error).__name__, error)
