"""DagsterProgress: show progress on the run page, on the asset page, and in the compute log."""

from functools import partial
from typing import Final

import dagster as dg

from dagster_dataops.assets.runtime.messenger import Messenger
from dagster_dataops.assets.runtime.observations import Observations
from dagster_dataops.execution.progress import ConsoleProgress, LogPace, Progress, ProgressState
from dagster_dataops.foundation.override import override

_FIRST_LINE_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 1.0  # a canceled run must end within three seconds


class DagsterProgress(Progress):
    """Logs lines and observations at growing intervals; redraws the bar once a second.

    A line or an observation takes the database milliseconds, or longer if it is slow. Each is sent
    in the messenger's thread, and only after the previous one has arrived.
    """

    def __init__(
        self,
        log: dg.DagsterLogManager,
        observations: Observations | None = None,
        messenger: Messenger | None = None,
    ) -> None:
        self._log = log
        self._observations = observations
        self._messenger = messenger or Messenger()
        self._bar = ConsoleProgress(bar=True, seconds_between=1.0)
        self._pace = LogPace(_FIRST_LINE_SECONDS)
        self._name = ""

    @override
    def start(self, name: str, state: ProgressState) -> None:
        self._name = name
        self._pace = LogPace(_FIRST_LINE_SECONDS)
        self._bar.start(name, state)

    @override
    def note(self, text: str) -> None:
        self._write(text)
        self._messenger.wait(_PATIENCE_SECONDS)

    @override
    def warn(self, name: str, text: str) -> None:
        self._messenger.send(partial(self._log.warning, f"{name}: {text}"))
        self._messenger.wait(_PATIENCE_SECONDS)

    def _write(self, text: str) -> None:
        self._messenger.send(partial(self._log.info, f"{self._name}: {text}".removeprefix(": ")))

    @override
    def update(self, state: ProgressState) -> None:
        self._bar.update(state)
        if self._messenger.busy:
            return
        if self._pace.due():
            self._write(state.describe(self._pace.seconds()))
        if self._observations is not None and self._observations.due():
            self._observe(self._observations, state)

    def _observe(self, observations: Observations, state: ProgressState) -> None:
        self._messenger.send(partial(observations.log, state, self._pace.seconds()))

    @override
    def finish(self, state: ProgressState) -> None:
        self._bar.finish(state)
        if self._observations is not None and self._observations.begun:
            self._observe(self._observations, state)
        self._messenger.finish(_PATIENCE_SECONDS)
