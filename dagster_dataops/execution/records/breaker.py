"""Breaker: stop a run if too many consecutive calls fail.

It counts attempts, not records. Lines that are not records do not count, because the operator is
not called for them.
"""

import threading
from collections import deque
from collections.abc import Callable

from dagster_dataops.execution.records.record_failures import (
    INVALID_LINE,
    Failure,
    Outcome,
    in_full,
)
from dagster_dataops.foundation.concurrency.retrying import STOP, FailureRow
from dagster_dataops.operators.definition.operator import Operator


class Breaker:
    """Count failed attempts of each exception since the last success; shared by threads.

    Exceptions are distinguished by the name of their class. Messages often name a record or a
    request, and tracebacks say little about calls over a network.

    Args:
        limit: Number of failed attempts with one exception that opens it; 0 for never.
        opened: Called when it opens, in the thread of the last attempt.
        in_flight: Number of concurrent calls.
        operator: The operator that is called.

    Attributes:
        failure: The failure that opened it; ``None`` while it is closed.
    """

    def __init__(
        self,
        limit: int,
        opened: Callable[[], None] = lambda: None,
        in_flight: int = 1,
        operator: Operator | None = None,
    ) -> None:
        self._operator = operator
        self._limit = limit
        self._row = FailureRow(limit)
        self._opened = opened
        self._in_flight = in_flight
        self._lock = threading.Lock()
        self._successes = 0
        self._last_failed: deque[tuple[int, int]] = deque()  # start, successes before
        self.failure: Failure | None = None

    @property
    def open(self) -> bool:
        """Whether the run is to stop."""
        return self.failure is not None

    @property
    def last_failed(self) -> list[int]:
        """Byte positions of the failed records after which no later call has succeeded.

        Among as many successes as there are concurrent calls, at least one began later.
        """
        with self._lock:
            return [start for start, _ in self._last_failed]

    def count(self, outcome: Outcome, start: int) -> None:
        """Count the outcome of a record's last attempt; a blank line does not count."""
        if isinstance(outcome, Failure):
            if self._counts(outcome):
                self._last_failed.append((start, self._successes))
                self.failed(outcome)
        elif outcome is not None:
            self.succeeded()

    def succeeded(self) -> None:
        """Reset the count, unless it is open."""
        if not self._row.failed_since and not self._last_failed:
            return
        with self._lock:
            if self.open:
                return
            self._row.succeeded()
            self._successes += 1
            over = self._successes - self._in_flight
            while self._last_failed and self._last_failed[0][1] <= over:
                self._last_failed.popleft()

    def _counts(self, failure: Failure) -> bool:
        return bool(self._limit) and failure.exception != INVALID_LINE

    def failed(self, failure: Failure) -> None:
        """Count a failed attempt."""
        if not self._counts(failure):
            return
        with self._lock:
            opens = self._row.failed(failure.exception) == STOP and not self.open
            if opens:
                self.failure = in_full(failure, self._operator)
        if opens:
            self._opened()
