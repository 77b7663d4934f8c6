"""SpanLoop: works through byte ranges of the input, settling a span at least twice a second.

What worker processes and single mode run. A span ends after a megabyte of input, after half a
second of work, or when its output fills the buffer: so a kill costs at most that, whatever an
operator takes for a record. Single mode passes spans to no other process and settles more often.
Larger blocks would be slower: they leave the processor's cache.
"""

import math
import time
from collections.abc import Callable
from threading import Lock
from typing import Final

from dagster_dataops.checkpoints.journal.settled_span import SettledSpan
from dagster_dataops.datasets.lines import Interval, next_line_start, read_lines
from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.fork_guard import ForkGuard
from dagster_dataops.execution.records.record_failures import Failed
from dagster_dataops.execution.records.settle import Settle
from dagster_dataops.execution.records.span_block import SpanBlock, Terms

SETTLE_SECONDS: Final = 0.5
_PARTS: Final = 10  # of that time; a slice that takes longer than one ends after its record
BLOCK_BYTES: Final = 1 << 20
_BUFFER_BYTES: Final = 4 << 20
_SLICE_SECONDS: Final = 0.01  # how often the clock is looked at
_SLICE_BYTES: Final = 1 << 20
_MAX_SLICE: Final = 4096


class SpanLoop:
    """Settles ranges of one input.

    Args:
        settle: Settles lines.
        descriptor: The open input.
        write: Takes every span with its output and error lines, in order.
        operator: Qualified name, for error lines.
        ignore_errors: Whether a failure is written down or ends the range.
        check_input: Whether spans carry a checksum of their input.
        breaker: Ends the range once it is open.
        settle_seconds: The work after which a span ends, where that is not `SETTLE_SECONDS`.
        announce: Told the byte position of every record before it is begun.
        shortened: Told where a range ends now that takes too long, while it is under way: what is
            behind that, others may begin. Also by another thread, as a single record may be what
            takes long; and not once the range is through.

    Attributes:
        position: Up to where the range of the last `run` was settled.
    """

    def __init__(  # noqa: PLR0913 - made in few places
        self,
        settle: Settle,
        descriptor: int,
        write: Callable[[SettledSpan], None],
        *,
        operator: str,
        ignore_errors: bool,
        check_input: bool,
        breaker: Breaker | None = None,
        settle_seconds: float | None = None,
        announce: Callable[[int], None] | None = None,
        shortened: Callable[[int], None] | None = None,
    ) -> None:
        self._settle = settle
        self._descriptor = descriptor
        self._slice = 1
        self._settle_seconds = SETTLE_SECONDS if settle_seconds is None else settle_seconds
        self._announce = announce
        self._fork_guard = ForkGuard()
        self._shortened = shortened
        self._lock = Lock()  # held to change what others may begin
        self._pending: SpanBlock | None = None
        self._end = 0  # of the range
        self._until = math.inf
        self.position = 0
        breaker = breaker or Breaker(0)
        self._terms = Terms(write, operator, ignore_errors, check_input, breaker)

    def run(
        self, start: int, end: int, *, one_by_one: bool = False, patience: float = math.inf
    ) -> Failed | None:
        """Settle the lines of [start, end).

        Args:
            start: Where a line starts.
            end: Where another one starts, or the end of the file.
            one_by_one: Whether every record is a span of its own.
            patience: The seconds after which what is not begun is left to others.

        Returns:
            The first failure if failures are not ignored, or the one that opened the breaker; what
            came before it is settled.
        """
        fixed_slice = 1 if one_by_one else 0
        self._until = time.monotonic() + patience
        self.position, self._end = start, end
        while self.position < self._end:
            start = self.position
            cut = next_line_start(self._descriptor, min(start + BLOCK_BYTES, end), end)
            pending = SpanBlock(
                self._terms, read_lines(self._descriptor, Interval(start, cut)), start
            )
            try:
                failed = self._run(pending, fixed_slice)
            finally:  # an interrupt as well leaves what was finished settled
                with self._lock:
                    self._pending = None
                pending.flush()
                self.position = pending.start
            if failed is not None:
                return failed
        return None

    def _run(self, pending: SpanBlock, fixed_slice: int) -> Failed | None:
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

        So the lines behind a record that takes long are returned while it is being processed.
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
