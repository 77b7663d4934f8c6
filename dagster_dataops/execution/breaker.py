"""Breaker: notices that calls fail one after the other, so that a run need not try all records.

It counts tries, not records. A line that is no record counts for nothing: the operator is not
called for it.
"""

import threading
from collections import Counter
from collections.abc import Callable

from dagster_dataops.execution.failures import INVALID_LINE, Failure, Outcome


def _nothing() -> None: ...


class Breaker:
    """Counts failed tries of each exception since the last success; shared by threads.

    Exceptions are told apart by the name of their class. Their messages often name a record or a
    request, and where they were raised says little of calls over a network.

    Args:
        limit: How many failed tries of one exception open it; 0 for never.
        opened: Called once it opens, in the thread of the try that opened it.

    Attributes:
        failure: What opened it; ``None`` as long as it is not open.
    """

    def __init__(self, limit: int, opened: Callable[[], None] = _nothing) -> None:
        self._limit = limit
        self._opened = opened
        self._lock = threading.Lock()
        self._failed: Counter[str] = Counter()
        self.failure: Failure | None = None

    @property
    def open(self) -> bool:
        """Whether the run is to stop."""
        return self.failure is not None

    def count(self, outcome: Outcome) -> None:
        """Count what the last try of a record came to; a blank line counts for nothing."""
        if isinstance(outcome, Failure):
            self.failed(outcome)
        elif outcome is not None:
            self.succeeded()

    def succeeded(self) -> None:
        """Count from 0 again, unless it is open already."""
        if self._failed:
            with self._lock:
                self._failed.clear()

    def failed(self, failure: Failure) -> None:
        """Count a failed try."""
        if not self._limit or failure.exception == INVALID_LINE:
            return
        with self._lock:
            self._failed[failure.exception] += 1
            opens = not self.open and self._failed[failure.exception] >= self._limit
            if opens:
                self.failure = failure
        if opens:
            self._opened()
