"""SpanLoop: settle byte ranges of the input, one span at least twice a second.

Worker processes and single mode run it. A span ends after a megabyte of input, after half a second
of work, or when its output fills the buffer. A kill costs at most one span, unless a single record
takes longer. Single mode settles more often, because its spans cross no process boundary. Larger
blocks are slower, because they do not fit into the processor's cache.
"""

import math
import time
from collections.abc import Callable
from threading import Lock
from typing import Final

from dagster_dataops.byte_ranges import Readable, expect
from dagster_dataops.checkpoints.journal.settled_span import SettledSpan
from dagster_dataops.datasets.lines import Interval, next_line_start, read_lines
from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.fork_guard import ForkGuard
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.execution.records.settle import Settle
from dagster_dataops.execution.records.span_block import SpanBlock, Terms
from dagster_dataops.operators.outcomes.record_context import Tally

SETTLE_SECONDS: Final = 0.5
_PARTS: Final = 10  # share of that time; a slice ends after the record during which it is over
BLOCK_BYTES: Final = 1 << 20
_BUFFER_BYTES: Final = 4 << 20
_SLICE_SECONDS: Final = 0.01  # target time of a slice
_SLICE_BYTES: Final = 1 << 20
_MAX_SLICE: Final = 4096


class SpanLoop:
    """Settle ranges of one input.

    Args:
        settle: Settles lines.
        descriptor: The open input.
        write: Receives every span with its output and error lines, in order.
        operator: Qualified name, for error lines.
        ignore_errors: Whether a failure becomes an error line or ends the range.
        check_input: Whether spans carry a checksum of their input.
        breaker: Ends the range once it is open.
        settle_seconds: Seconds of work after which a span ends; by default `SETTLE_SECONDS`.
        announce: Called with the byte position of every record before it is processed.
        shortened: Called with the new end of a range that takes too long; other workers may
            process the lines after it. The thread that calls `shorten_if_late` may call it while a
            record is being processed.
        tally: Counts and dispositions of the records that ``settle`` settles.

    Attributes:
        position: The byte up to which the range of the last `run` is settled.
        began: When the first lines of that range were there. The patience counts from then: the
            latency of a store says nothing about the records.
    """

    def __init__(  # noqa: PLR0913 - made in few places
        self,
        settle: Settle,
        descriptor: Readable,
        write: Callable[[SettledSpan], None],
        *,
        operator: str,
        ignore_errors: bool,
        check_input: bool,
        breaker: Breaker | None = None,
        settle_seconds: float | None = None,
        announce: Callable[[int], None] | None = None,
        shortened: Callable[[int], None] | None = None,
        tally: Tally | None = None,
    ) -> None:
        self._settle = settle
        self._descriptor = descriptor
        self._slice = 1
        self._settle_seconds = SETTLE_SECONDS if settle_seconds is None else settle_seconds
        self._announce = announce
        self._fork_guard = ForkGuard()
        self._shortened = shortened
        self._lock = Lock()  # held while the end of the range changes
        self._pending: SpanBlock | None = None
        self._end = 0  # of the current range
        self._until = math.inf
        self.position, self.began = 0, 0.0
        breaker = breaker or Breaker(0)
        tally = tally or Tally()
        self._terms = Terms(write, operator, ignore_errors, check_input, breaker, tally)

    def run(
        self, start: int, end: int, *, one_by_one: bool = False, patience: float = math.inf
    ) -> Failure | None:
        """Settle the lines of [start, end).

        Args:
            start: Position of the first line.
            end: Position of another line, or the end of the file.
            one_by_one: Whether every record is a separate span.
            patience: Seconds after which the lines that are not begun are left to other workers.

        Returns:
            The first failure if failures are not ignored, or the failure that opened the breaker.
            All records before it are settled.
        """
        fixed_slice = 1 if one_by_one else 0
        self._until = math.inf
        self.position, self._end = start, end
        expect(self._descriptor, start, end)
        self.began = time.monotonic()
        self._until = self.began + patience
        while self.position < self._end:
            start = self.position
            cut = next_line_start(self._descriptor, min(start + BLOCK_BYTES, end), end)
            pending = SpanBlock(
                self._terms, read_lines(self._descriptor, Interval(start, cut)), start
            )
            try:
                failed = self._run(pending, fixed_slice)
            finally:  # finished records are settled, also after an interrupt
                with self._lock:
                    self._pending = None
                pending.flush()
                self.position = pending.start
            if failed is not None:
                return failed
        return None

    def _run(self, pending: SpanBlock, fixed_slice: int) -> Failure | None:
        self._pending = pending
        settled_at = began = time.monotonic()
        while not pending.exhausted:
            if self._announce is not None:
                self._slice = 1
                self._announce(pending.position)
            with self._lock:
                pending.begin(fixed_slice or self._slice)
            try:
                failed = pending.advance(self._settle, began + SETTLE_SECONDS / _PARTS)
            finally:
                self._fork_guard.check()
            if failed is not None:
                return failed
            now = time.monotonic()
            size = pending.take_new_bytes()
            self._adapt(now - began, size)
            began = now
            if now >= self._until:
                with self._lock:
                    pending.begin(0)
                    self._shorten(pending)
            late = now >= settled_at + self._settle_seconds
            if late or pending.size >= _BUFFER_BYTES or fixed_slice:
                pending.flush()
                settled_at = now
        return None

    def shorten_if_late(self) -> None:
        """Shorten the range if its time is over; safe to call in another thread.

        This returns the lines behind a slow record while that record is being processed.
        """
        if time.monotonic() >= self._until:
            with self._lock:
                if self._pending is not None:
                    self._shorten(self._pending)

    def _shorten(self, pending: SpanBlock) -> None:
        end = pending.shorten()
        if end is not None and end < self._end:
            self._end = end
            if self._shortened is not None:
                self._shortened(end)

    def _adapt(self, seconds: float, size: int) -> None:
        if seconds < _SLICE_SECONDS and size < _SLICE_BYTES:
            self._slice = min(self._slice * 2, _MAX_SLICE)
        elif seconds > 2 * _SLICE_SECONDS or size > 2 * _SLICE_BYTES:
            self._slice = max(self._slice // 2, 1)
