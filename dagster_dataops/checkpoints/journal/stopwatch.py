"""Stopwatch: how long the attempts on a checkpoint were at work until their latest settled record.

That is the time which going on from there saves. It is written into the journal as the work goes
on, ever more rarely: to a hundredth, in a thousand frames for the longest run. Only the monotonic
clock is asked, so neither clocks that are set nor files that are copied tell of hours that nobody
worked.
"""

import time
from typing import Final

from dagster_dataops.checkpoints.journal.frames import clock_frame

_GROWTH: Final = 1.01
_LEAST_SECONDS: Final = 0.05


class Stopwatch:
    """Runs from construction.

    Args:
        before: Seconds of the attempts before this one.
    """

    def __init__(self, before: float) -> None:
        self.before = before
        self._began = time.monotonic()
        self._settled = 0.0
        self._next = 0.0

    @property
    def seconds(self) -> float:
        """Of all attempts, up to what was settled last."""
        return self.before + self._settled

    def settled(self) -> bytes:
        """Take note that something has been settled; return the frame to journal, if one is due."""
        self._settled = time.monotonic() - self._began
        if self._settled < self._next:
            return b""
        self._next = self._settled * _GROWTH + _LEAST_SECONDS
        return clock_frame(self._settled)
