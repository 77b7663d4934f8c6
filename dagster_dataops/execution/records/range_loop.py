"""RangeLoop: the base of the loops that run byte ranges of the input.

A range that takes too long is shortened: the lines that are not begun are left to other workers.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from dagster_dataops.checkpoints.journal.finished_span import FinishedSpan
from dagster_dataops.execution.records.calls import Calls
from dagster_dataops.foundation.concurrency.fork_safety import ForkGuard
from dagster_dataops.foundation.places.range_source import Readable, expect

if TYPE_CHECKING:
    from dagster_dataops.execution.records.record_failures import Failure


Write: TypeAlias = Callable[[FinishedSpan], None]


class RangeLoop(ABC):
    """Runs ranges of one input.

    Args:
        calls: The open operator.
        source: The open input.
        write: Receives every span with its output and error lines, in order.
        checks_input: Whether spans carry a checksum of their input.
        announce: Called with the byte position of every record, or batch, before it is processed.
        shortened: Called with the new end of a range that takes too long; other workers may
            process the lines after it. The thread that calls `RangeLoop.shorten_if_late` may call
            it while a record is being processed.

    Attributes:
        began: When the first lines of the range of the last `run` were there. The patience counts
            from then: the latency of a store says nothing about the records.
    """

    def __init__(
        self,
        calls: Calls,
        source: Readable,
        write: Write,
        *,
        checks_input: bool,
        announce: Callable[[int], None] | None = None,
        shortened: Callable[[int], None] | None = None,
    ) -> None:
        self._calls = calls
        self._source = source
        self._write = write
        self._checks_input = checks_input
        self._announce = announce
        self._shortened = shortened
        self._apart = calls.settings.reuse_outcomes
        self._fork_guard = ForkGuard()
        self._lock = Lock()  # held while the end of the range changes
        self._end = 0  # of the current range
        self._until = math.inf
        self.began = 0.0

    def run(
        self, start: int, end: int, *, one_by_one: bool = False, patience: float = math.inf
    ) -> "Failure | None":
        """Run the lines of [start, end).

        Args:
            start: Position of the first line; where a batch starts if the operator takes batches.
            end: Position of another line, or the end of the file.
            one_by_one: Whether every record is a span, and a batch, of its own.
            patience: Seconds after which the lines that are not begun are left to other workers.

        Returns:
            The first failure if failures are not ignored, or the failure that opened the breaker.
            All records before it are written.
        """
        self._until = math.inf
        self._end = end
        expect(self._source, start, end)
        self.began = time.monotonic()
        self._until = self.began + patience
        return self._run_range(start, end, one_by_one=one_by_one)

    @abstractmethod
    def _run_range(self, start: int, end: int, *, one_by_one: bool) -> "Failure | None":
        """Run the lines of [start, end), as far as the range is not shortened."""

    def shorten_if_late(self) -> None:
        """Shorten the range if its time is over; safe to call in another thread.

        This returns the lines behind a slow record while that record is being processed.
        """
        if time.monotonic() >= self._until:
            with self._lock:
                begun = self._begun_until()
                if begun is not None and begun < self._end:
                    self._end = begun
                    if self._shortened is not None:
                        self._shortened(begun)

    @abstractmethod
    def _begun_until(self) -> int | None:
        """Return the end of the lines that are begun, if any are; begin no others."""
