"""BatchLoop: settle byte ranges of the input in batches, in a worker process.

It has the methods of `SpanLoop`. Every batch is a span, so a resumed run repeats whole batches.
"""

import math
import time
from collections.abc import Callable
from threading import Lock

from dagster_dataops.byte_ranges import Readable, expect
from dagster_dataops.checkpoints.journal.settled_span import SettledSpan
from dagster_dataops.datasets.batches import batches_of
from dagster_dataops.datasets.lines import Interval, Line
from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.finished_records import Finished, span_of
from dagster_dataops.execution.records.fork_guard import ForkGuard
from dagster_dataops.execution.records.record_failures import Failure


class BatchLoop:
    """Settle ranges of one input in batches.

    Args:
        settle: Settles a batch.
        descriptor: The open input.
        write: Receives every span with its output and error lines, in order.
        size: Records a batch.
        operator: Qualified name, for error lines.
        ignore_errors: Whether a failure becomes an error line or ends the range.
        check_input: Whether spans carry a checksum of their input.
        apart: Whether every record is a span of its own.
        breaker: Ends the range once it is open.
        announce: Called with the byte position of every batch before it is processed.
        shortened: Called with the new end of a range that takes too long; other workers may
            process the lines after it.

    Attributes:
        began: When the first lines of the range of the last `run` were there; see `SpanLoop`.
    """

    def __init__(  # noqa: PLR0913 - made in one place
        self,
        settle: Callable[[list[Line]], list[Finished]],
        descriptor: Readable,
        write: Callable[[SettledSpan], None],
        *,
        size: int,
        operator: str,
        ignore_errors: bool,
        check_input: bool,
        apart: bool,
        breaker: Breaker,
        announce: Callable[[int], None] | None,
        shortened: Callable[[int], None],
    ) -> None:
        self._settle = settle
        self._descriptor = descriptor
        self._write = write
        self._size = size
        self._operator = operator
        self._ignore_errors = ignore_errors
        self._check_input = check_input
        self._apart = apart
        self._breaker = breaker
        self._announce = announce
        self._shortened = shortened
        self._fork_guard = ForkGuard()
        self._lock = Lock()  # held while the end of the range changes
        self._begun = self._end = 0
        self._until = math.inf
        self.began = 0.0

    def run(
        self, start: int, end: int, *, one_by_one: bool = False, patience: float = math.inf
    ) -> Failure | None:
        """Settle the lines of [start, end).

        Args:
            start: Where a batch starts.
            end: Where another one starts, or the end of the file.
            one_by_one: Whether every record is a batch of its own.
            patience: Seconds after which the batches that are not begun are left to other workers.

        Returns:
            The first failure if failures are not ignored, or the failure that opened the breaker.
        """
        self._until = math.inf
        self._begun, self._end = start, end
        expect(self._descriptor, start, end)
        self.began = time.monotonic()
        self._until = self.began + patience
        size = 1 if one_by_one else self._size
        for batch in batches_of(self._descriptor, [Interval(start, end)], start, size):
            if not self._begin(batch):
                break
            failure = self._settled(batch)
            if failure is not None:
                return failure
            self.shorten_if_late()
        return None

    def _begin(self, batch: list[Line]) -> bool:
        """Begin a batch, unless it was left to other workers."""
        with self._lock:
            if batch[0].start >= self._end:
                return False
            self._begun = batch[-1].end
        if self._announce is not None:
            self._announce(batch[0].start)
        return True

    def _settled(self, batch: list[Line]) -> Failure | None:
        """Settle a batch; return the failure that ends the range."""
        try:
            finished = self._settle(batch)
        finally:
            self._fork_guard.check()
        for line, outcome, _ in finished:
            if isinstance(outcome, Failure) and not self._ignore_errors:
                return outcome._replace(offset=line.start)
            self._breaker.count(outcome, line.start)
        for part in [[one] for one in finished] if self._apart else [finished]:
            self._write(span_of(part, self._operator, check_input=self._check_input))
        return self._breaker.failure

    def shorten_if_late(self) -> None:
        """Shorten the range if its time is over; safe to call in another thread."""
        with self._lock:
            if time.monotonic() >= self._until and self._begun < self._end:
                self._end = self._begun
                self._shortened(self._end)
