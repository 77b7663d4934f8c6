"""RangeLoop: the base of the loops that settle byte ranges of the input.

A range that takes too long is shortened: the lines that are not begun are left to other workers.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from dagster_dataops.checkpoints.journal.settled_span import SettledSpan
from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.fork_guard import ForkGuard
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.operators.outcomes.record_context import Tally
from dagster_dataops.places.range_source import Readable, expect


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The options of a loop.

    Attributes:
        write: Receives every span with its output and error lines, in order.
        operator: Qualified name, for error lines.
        ignore_errors: Whether a failure becomes an error line. Otherwise it ends the range.
        check_input: Whether spans carry a checksum of their input.
        apart: Whether every record is a span of its own.
        breaker: Counts failures; the failure that opens it ends the range.
        tally: Counts and dispositions of the records that are being settled.
        announce: Called with the byte position of every record, or batch, before it is processed.
        shortened: Called with the new end of a range that takes too long; other workers may
            process the lines after it. The thread that calls `RangeLoop.shorten_if_late` may call
            it while a record is being processed.
    """

    write: Callable[[SettledSpan], None]
    operator: str
    ignore_errors: bool
    check_input: bool
    apart: bool = False
    breaker: Breaker = field(default_factory=lambda: Breaker(0))
    tally: Tally = field(default_factory=Tally)
    announce: Callable[[int], None] | None = None
    shortened: Callable[[int], None] | None = None


class RangeLoop(ABC):
    """Settles ranges of one input.

    Args:
        source: The open input.
        terms: The options.

    Attributes:
        began: When the first lines of the range of the last `run` were there. The patience counts
            from then: the latency of a store says nothing about the records.
    """

    def __init__(self, source: Readable, terms: Terms) -> None:
        self._source = source
        self._terms = terms
        self._fork_guard = ForkGuard()
        self._lock = Lock()  # held while the end of the range changes
        self._end = 0  # of the current range
        self._until = math.inf
        self.began = 0.0

    def run(
        self, start: int, end: int, *, one_by_one: bool = False, patience: float = math.inf
    ) -> Failure | None:
        """Settle the lines of [start, end).

        Args:
            start: Position of the first line; where a batch starts if the operator takes batches.
            end: Position of another line, or the end of the file.
            one_by_one: Whether every record is a span, and a batch, of its own.
            patience: Seconds after which the lines that are not begun are left to other workers.

        Returns:
            The first failure if failures are not ignored, or the failure that opened the breaker.
            All records before it are settled.
        """
        self._until = math.inf
        self._end = end
        expect(self._source, start, end)
        self.began = time.monotonic()
        self._until = self.began + patience
        return self._settle_range(start, end, one_by_one=one_by_one)

    @abstractmethod
    def _settle_range(self, start: int, end: int, *, one_by_one: bool) -> Failure | None:
        """Settle the lines of [start, end), as far as the range is not shortened."""

    def shorten_if_late(self) -> None:
        """Shorten the range if its time is over; safe to call in another thread.

        This returns the lines behind a slow record while that record is being processed.
        """
        if time.monotonic() >= self._until:
            with self._lock:
                begun = self._begun_until()
                if begun is not None and begun < self._end:
                    self._end = begun
                    if self._terms.shortened is not None:
                        self._terms.shortened(begun)

    @abstractmethod
    def _begun_until(self) -> int | None:
        """Return the end of the lines that are begun, if any are; begin no others."""
