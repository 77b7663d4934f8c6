"""Time limits in the main thread: the signal of a timer raises an exception in the operator.

The exception is raised only while the operator's call is running. A signal that arrives after the
call has returned has no effect.
"""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from dagster_dataops.execution.timeouts.record_timeout import Forward, RecordTimeout
from dagster_dataops.operators.outcomes.record_context import Tally
from dagster_dataops.records import Record

_AGAIN_SECONDS: Final = 1.0  # the operator may catch the first exception


def alarm_obstacle() -> str | None:
    """Return the reason why the timer cannot be used here; ``None`` if it can."""
    if threading.current_thread() is not threading.main_thread():
        return "the run is not in the main thread"
    if not hasattr(signal, "setitimer"):
        return "this system has no interval timer"
    is_handled = signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
    if is_handled or any(signal.getitimer(signal.ITIMER_REAL)):
        return "something else uses SIGALRM"
    return None


class Alarm:
    """Raise `RecordTimeout` in calls that take too long; one at a time, in the main thread.

    Args:
        seconds: Time limit of a call.
        tally: Knows the time that a call waits, which does not count.
    """

    def __init__(self, seconds: float, tally: Tally | None = None) -> None:
        self._seconds = seconds
        self._tally = tally or Tally()
        self._deadline = math.inf

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle SIGALRM during the block."""
        before = signal.signal(signal.SIGALRM, self._ring)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def around(self, forward: Forward) -> Forward:
        """Return ``forward`` with the time limit."""

        def limited(record: Record) -> object:
            self._deadline = time.monotonic() + self._seconds
            signal.setitimer(signal.ITIMER_REAL, self._seconds)
            try:
                return _inside(forward, record)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

        return limited

    def _ring(self, _number: int, frame: FrameType | None) -> None:
        late = time.monotonic() - self._deadline - self._tally.waited
        if not _is_inside(frame):
            return  # the call has returned
        if late < 0:  # the next call has begun, or this one has waited: restart its timer
            signal.setitimer(signal.ITIMER_REAL, -late)
            return
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
        raise RecordTimeout(self._seconds)


def _inside(forward: Forward, record: Record) -> object:
    return forward(record)


def _is_inside(frame: FrameType | None) -> bool:
    """Return whether `_inside` called ``frame``, directly or not."""
    while frame is not None:
        if frame.f_code is _inside.__code__:
            return True
        frame = frame.f_back
    return False
