"""DagsterProgress: progress on the run page, and a bar in the step's compute log."""

import dagster as dg
from typing_extensions import override

from dagster_dataops.execution.progress import ConsoleProgress, LogPace, Progress, ProgressState


class DagsterProgress(Progress):
    """Log lines, ever more rarely; the bar redraws once a second in the compute log.

    Args:
        log: The step's log; each line costs milliseconds, so there are few.
    """

    def __init__(self, log: dg.DagsterLogManager) -> None:
        self._log = log
        self._bar = ConsoleProgress(bar=True, seconds_between=1.0)
        self._pace = LogPace(first_seconds=2.0)
        self._name = ""

    @override
    def start(self, name: str, state: ProgressState) -> None:
        self._name = name
        self._pace = LogPace(first_seconds=2.0)
        self._bar.start(name, state)

    @override
    def note(self, text: str) -> None:
        self._log.info(f"{self._name}: {text}" if self._name else text)

    @override
    def update(self, state: ProgressState) -> None:
        self._bar.update(state)
        if self._pace.due():
            self._log.info(f"{self._name}: {state.describe(self._pace.seconds())}")

    @override
    def finish(self, state: ProgressState) -> None:
        self._bar.finish(state)
