"""Time limits in a process's main thread: a timer's signal raises into the operator.

The signal raises nowhere but below the operator's own call: one that arrives a moment too late,
when the call has returned, does nothing.
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
from dagster_dataops.records import Record

_AGAIN_SECONDS: Final = 1.0  # an operator may catch the first one, with `except Exception`


def alarm_obstacle() -> str | None:
    """Return why no timer can be used here, or ``None`` if one can."""
    if threading.current_thread() is not threading.main_thread():
        return "the run is not in the main thread"
    if not hasattr(signal, "setitimer"):
        return "this system has no interval timer"
    taken = signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
    if taken or any(signal.getitimer(signal.ITIMER_REAL)):
        return "something else uses SIGALRM"
    return None


class Alarm:
    """Raises `RecordTimeout` into calls that take too long; one at a time, in the main thread.

    Args:
        seconds: How long a call may take.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline = math.inf

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Take SIGALRM for as long as calls are made."""
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
        late = time.monotonic() - self._deadline
        if not _is_inside(frame):
            return  # of a call that has returned
        if late < 0:  # likewise, and the next call has begun: its own alarm is still to come
            signal.setitimer(signal.ITIMER_REAL, -late)
            return
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
        raise RecordTimeout(self._seconds)


def _inside(forward: Forward, record: Record) -> object:
    return forward(record)


def _is_inside(frame: FrameType | None) -> bool:
    """Whether ``frame`` is that of `_inside` or below it."""
    while frame is not None:
        if frame.f_code is _inside.__code__:
            return True
        frame = frame.f_back
    return False
