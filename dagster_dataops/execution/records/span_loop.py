"""SpanLoop: run byte ranges of the input, one span at least twice a second.

Worker processes and single mode run it. A span ends after a megabyte of input, after half a second
of work, or when its output fills the buffer. A kill costs at most one span, unless a single record
takes longer. Single mode writes more often, because its spans cross no process boundary. Larger
blocks are slower, because they do not fit into the processor's cache.
"""

import time
from typing import Any, Final

from typing_extensions import override

from dagster_dataops.datasets.lines import Interval, block_end, read_lines
from dagster_dataops.execution.records.calls import Calls
from dagster_dataops.execution.records.range_loop import RangeLoop, Write
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.execution.records.span_block import SpanBlock
from dagster_dataops.foundation.places.range_source import Readable

SPAN_SECONDS: Final = 0.5
_PARTS: Final = 10  # share of that time; a slice ends after the record during which it is over
BLOCK_BYTES: Final = 1 << 20
_BUFFER_BYTES: Final = 4 << 20
_SLICE_SECONDS: Final = 0.01  # target time of a slice
_SLICE_BYTES: Final = 1 << 20
_MAX_SLICE: Final = 4096


class SpanLoop(RangeLoop):
    """Runs ranges of one input.

    Args:
        calls: As for `RangeLoop`.
        source: As for `RangeLoop`.
        write: As for `RangeLoop`.
        span_seconds: Seconds of work after which a span ends; by default `SPAN_SECONDS`.
        options: As for `RangeLoop`.

    Attributes:
        position: The byte up to which the range of the last `run` is written.
    """

    def __init__(
        self,
        calls: Calls,
        source: Readable,
        write: Write,
        *,
        span_seconds: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(calls, source, write, **options)
        self._call = calls.call
        self._slice = 1
        self._span_seconds = SPAN_SECONDS if span_seconds is None else span_seconds
        self._pending: SpanBlock | None = None
        self.position = 0

    @override
    def _run_range(self, start: int, end: int, *, one_by_one: bool) -> Failure | None:
        fixed_slice = 1 if one_by_one or self._apart else 0
        self.position = start
        while self.position < self._end:
            start = self.position
            cut = block_end(self._source, start, BLOCK_BYTES, end)
            block = read_lines(self._source, Interval(start, cut))
            pending = SpanBlock(
                self._calls, self._write, block, start, checks_input=self._checks_input
            )
            try:
                failed = self._run(pending, fixed_slice)
            finally:  # finished records are written, also after an interrupt
                with self._lock:
                    self._pending = None
                pending.flush()
                self.position = pending.start
            if failed is not None:
                return failed
        return None

    def _run(self, pending: SpanBlock, fixed_slice: int) -> Failure | None:
        self._pending = pending
        written_at = began = time.monotonic()
        while not pending.exhausted:
            if self._announce is not None:
                self._slice = 1
                self._announce(pending.position)
            with self._lock:
                pending.begin(fixed_slice or self._slice)
            try:
                failed = pending.advance(self._call, began + SPAN_SECONDS / _PARTS)
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
                self.shorten_if_late()
            late = now >= written_at + self._span_seconds
            if late or pending.size >= _BUFFER_BYTES or fixed_slice:
                pending.flush()
                written_at = now
        return None

    @override
    def _begun_until(self) -> int | None:
        return None if self._pending is None else self._pending.shorten()

    def _adapt(self, seconds: float, size: int) -> None:
        if seconds < _SLICE_SECONDS and size < _SLICE_BYTES:
            self._slice = min(self._slice * 2, _MAX_SLICE)
        elif seconds > 2 * _SLICE_SECONDS or size > 2 * _SLICE_BYTES:
            self._slice = max(self._slice // 2, 1)
