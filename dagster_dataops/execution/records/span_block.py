"""SpanBlock: a block of input lines, and the span that is built from them."""

import time
from collections.abc import Iterator

from dagster_dataops.checkpoints.journal.span_notes import add_counts
from dagster_dataops.datasets.lines import split_lines
from dagster_dataops.execution.records.calling import CallEach
from dagster_dataops.execution.records.calls import Calls
from dagster_dataops.execution.records.range_loop import Write
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.execution.records.span_draft import SpanDraft


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

    Attributes:
        start: Byte position of the current span.
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

    def advance(self, call: CallEach, until: float) -> Failure | None:
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

    def _advance(self, call: CallEach, until: float) -> tuple[Failure | None, BaseException | None]:
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

    def _ends_range(self, failure: Failure) -> bool:
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
