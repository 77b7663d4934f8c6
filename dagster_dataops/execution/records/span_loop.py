"""SpanLoop: run byte ranges of the input, one span at least twice a second.

Worker processes and single mode run it. A span ends after a megabyte of input, after half a second
of work, or when its output fills the buffer. A kill costs at most one span, unless a single record
takes longer. Single mode writes more often, because its spans cross no process boundary. Larger
blocks are slower, because they do not fit into the processor's cache.
"""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from dagster_dataops.checkpoints.journal.span_notes import add_counts
from dagster_dataops.datasets.lines import Interval, block_end, read_lines, split_lines
from dagster_dataops.execution.records.calling import CallEach
from dagster_dataops.execution.records.calls import Calls
from dagster_dataops.execution.records.range_loop import RangeLoop, Write
from dagster_dataops.execution.records.span_draft import SpanDraft
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.range_source import Readable

if TYPE_CHECKING:
    from dagster_dataops.execution.records.record_failures import Failure


SPAN_SECONDS: Final = 0.5
_PARTS: Final = 10  # share of that time; a slice ends after the record during which it is over
BLOCK_BYTES: Final = 1 << 20
_BUFFER_BYTES: Final = 4 << 20
_SLICE_SECONDS: Final = 0.01  # target time of a slice
_SLICE_BYTES: Final = 1 << 20
_MAX_SLICE: Final = 4096


class SpanBlock:
    """A block of input lines and its current span.

    The block is processed in slices of lines. An interrupt during an operator's call keeps the
    records before it. An interrupt between two records undoes the slice, so that the output always
    matches the number of records.

    Args:
        calls: The open operator.
        write: Receives every span.
        block: Whole lines.
        start: Byte position of the first line.
        checks_input: Whether spans carry a checksum of their input.
    """

    def __init__(
        self, calls: Calls, write: Write, block: bytes, start: int, *, checks_input: bool
    ) -> None:
        self._calls = calls
        self._write = write
        self._checks_input = checks_input
        self._block = block
        self._block_start = start
        self._lines = split_lines(block)
        self._next = 0  # index of the first unprocessed line
        self._begun = 0  # end of the current slice
        self._limit = len(self._lines)  # index from which lines are left to other workers
        self._anchor = (0, start)  # a line and its byte position, for _offset
        self.start = start
        self._draft = SpanDraft()
        self._measured = 0
        calls.tally.exact = checks_input

    @property
    def exhausted(self) -> bool:
        """Whether no line is left to process."""
        return self._next >= self._limit

    @property
    def position(self) -> int:
        """Byte position of the next line."""
        return self._offset(self._next)

    @property
    def size(self) -> int:
        """Output bytes of the span so far."""
        return len(self._draft.output)

    def begin(self, count: int) -> None:
        """Make the next ``count`` lines the current slice."""
        self._begun = min(self._next + count, self._limit)

    def shorten(self) -> int | None:
        """Leave the lines after the current slice to other workers; return their start.

        Return ``None`` before the first slice. Safe to call in another thread during a slice.
        """
        if not self._begun:
            return None
        self._limit = self._begun
        return self._block_start + sum(map(len, self._lines[: self._limit]))

    def advance(self, call: CallEach, until: float) -> "Failure | None":
        """Run the current slice, or the part of it that is done at a monotonic time.

        Returns:
            A failure that is not ignored, or the failure that opened the breaker.
        """
        mark, place, anchor = self._draft.mark(), self._next, self._anchor
        try:
            refused, interrupt = self._advance(call, until)
        except BaseException:  # an interrupt between two records
            self._draft.undo(mark)
            self._next, self._anchor = place, anchor
            self._calls.tally.clear()
            raise
        add_counts(self._draft.counts, self._calls.tally.take_counts())
        if interrupt is not None:
            raise interrupt
        return refused

    def _advance(
        self, call: CallEach, until: float
    ) -> "tuple[Failure | None, BaseException | None]":
        """Return the failure that ends the range, and the exception that interrupted it."""
        draft, tally = self._draft, self._calls.tally
        while True:
            lines = self._lines[self._next : self._begun]  # a call may take more than it finishes
            iterator = self._located(lines) if tally.used else iter(lines)
            stretch = call(iterator, draft.output, until)
            unusual = tally.take_unusual()
            draft.unusual += [
                (draft.records + position, disposition) for position, disposition in unusual
            ]
            draft.records += stretch.finished
            draft.dropped += stretch.dropped
            draft.emitted += stretch.finished - stretch.dropped + stretch.extra
            self._next += stretch.finished
            if stretch.finished:
                self._calls.breaker.succeeded()
            if stretch.interrupt is not None:
                tally.forget_call()
            if stretch.line is None or stretch.interrupt is not None:
                return None, stretch.interrupt
            if stretch.failure is not None:
                failure = stretch.failure._replace(offset=self.position)
                if self._ends_range(failure):
                    return failure, None
                name = self._calls.operator.__dataops__.spec.qualified_name
                draft.fail(failure, stretch.line.removesuffix(b"\n"), name)
            self._next += 1
            if time.monotonic() >= until:
                return None, None

    def _located(self, lines: list[bytes]) -> Iterator[bytes]:
        """Yield lines; tell the tally where each starts."""
        position = self._offset(self._next)
        for line in lines:
            self._calls.tally.start = position
            yield line
            position += len(line)

    def _ends_range(self, failure: "Failure") -> bool:
        """Count a failure; return whether it ends the range."""
        if not self._calls.settings.ignore_errors:
            return True
        self._calls.breaker.count(failure, failure.offset)
        return self._calls.breaker.open

    def take_new_bytes(self) -> int:
        """Return the number of output bytes since the last call."""
        fresh = self.size - self._measured
        self._measured = self.size
        return fresh

    def _offset(self, line: int) -> int:
        known, offset = self._anchor
        offset += sum(map(len, self._lines[known:line]))
        self._anchor = (line, offset)
        return offset

    def flush(self) -> None:
        """Write the current span and start the next one."""
        block_end = self._block_start + len(self._block)
        end = block_end if self._next == len(self._lines) else self._offset(self._next)
        if end == self.start:
            return
        first = self.start - self._block_start
        source = memoryview(self._block)[first : first + end - self.start]
        check = source if self._checks_input else None
        span = self._draft.finished(self.start, end - self.start, check)
        self.start, self._draft, self._measured = end, SpanDraft(), 0
        self._write(span)


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
    def _run_range(self, start: int, end: int, *, one_by_one: bool) -> "Failure | None":
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

    def _run(self, pending: SpanBlock, fixed_slice: int) -> "Failure | None":
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
