"""SpanBlock: a block of input lines, and the span that is built from them."""

import time
from collections.abc import Iterator

from dagster_dataops.checkpoints.journal.settled_span import SettledSpan
from dagster_dataops.checkpoints.journal.span_notes import Counts, SpanNotes, add_counts
from dagster_dataops.datasets.lines import split_lines
from dagster_dataops.execution.records.range_loop import Terms
from dagster_dataops.execution.records.record_failures import Failure, failed_record
from dagster_dataops.execution.records.settle import Settle, Stretch


class _Slice:
    """Counts of a slice: lines that are done, blank ones among them, dropped and result records."""

    def __init__(self) -> None:
        self.done = self.blank = self.dropped = self.emitted = 0

    @property
    def records(self) -> int:
        """Lines that are done and not blank."""
        return self.done - self.blank

    def add(self, stretch: Stretch) -> None:
        self.done += stretch.settled
        self.dropped += stretch.dropped
        self.emitted += stretch.settled - stretch.dropped + stretch.extra


class SpanBlock:
    """A block of input lines and its current span.

    The block is processed in slices of lines. An interrupt during an operator's call keeps the
    records before it. An interrupt between two records undoes the slice, so that the output always
    matches the number of records.

    Args:
        terms: The options of the loop.
        block: Whole lines.
        start: Byte position of the first line.

    Attributes:
        start: Byte position of the current span.
    """

    def __init__(self, terms: Terms, block: bytes, start: int) -> None:
        self._terms = terms
        self._block = block
        self._block_start = start
        self._lines = split_lines(block)
        self._next = 0  # index of the first unprocessed line
        self._begun = 0  # end of the current slice
        self._limit = len(self._lines)  # index from which lines are left to other workers
        self._anchor = (0, start)  # a line and its byte position, for _offset
        self.start = start
        # One growing buffer: orjson allocates 1 KB for each result. Keeping all results until the
        # span is written takes four times as long as encoding.
        self._output = bytearray()
        self._errors: list[bytes] = []
        self._records = 0
        self._emitted = 0
        self._dropped = 0
        self._unusual: list[tuple[int, bytes]] = []
        self._counts: Counts = {}
        self._measured = 0

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
        return len(self._output)

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

    def advance(self, settle: Settle, until: float) -> Failure | None:
        """Settle the current slice, or the part of it that is done at a monotonic time.

        Returns:
            A failure that is not ignored, or the failure that opened the breaker.
        """
        mark, errors_mark, anchor = len(self._output), len(self._errors), self._anchor
        unusual_mark = len(self._unusual)
        lines = self._lines[self._next : self._begun]
        try:
            refused, interrupt = self._advance(settle, lines, until)
        except BaseException:  # an interrupt between two records
            del self._output[mark:], self._errors[errors_mark:], self._unusual[unusual_mark:]
            self._anchor = anchor
            self._terms.tally.clear()
            raise
        add_counts(self._counts, self._terms.tally.take_counts())
        if interrupt is not None:
            raise interrupt
        return refused

    def _advance(
        self, settle: Settle, lines: list[bytes], until: float
    ) -> tuple[Failure | None, BaseException | None]:
        """Return the failure that ends the range, and the exception that interrupted it."""
        tally = self._terms.tally
        iterator = self._located(lines) if tally.used else iter(lines)
        part = _Slice()
        refused: Failure | None = None
        while True:
            stretch = settle(iterator, self._output, until)
            first = self._records + part.records
            self._unusual += [(first + position, one) for position, one in tally.take_unusual()]
            part.add(stretch)
            if stretch.settled:
                self._terms.breaker.succeeded()
            if stretch.line is None or stretch.interrupt is not None:
                break
            if stretch.failure is None:
                part.blank += 1
            else:
                refused = self._fail(part, stretch.line, stretch.failure)
                if refused is not None:
                    break
            part.done += 1
            if time.monotonic() >= until:
                break
        if stretch.interrupt is not None:
            tally.forget_call()
        self._next += part.done
        self._records += part.records
        self._emitted += part.emitted
        self._dropped += part.dropped
        return refused, stretch.interrupt

    def _fail(self, part: "_Slice", line: bytes, failure: Failure) -> Failure | None:
        """Add a failed record to the span; return it instead if it ends the range."""
        failure = failure._replace(offset=self._offset(self._next + part.done))
        if self._ends_range(failure):
            return failure
        position = self._records + part.records
        failed = failed_record(
            failure,
            line.removesuffix(b"\n"),
            self._terms.operator,
            position=position,
            output=len(self._output),
            dropped=self._dropped + part.dropped,
        )
        self._errors.append(failed.line())
        if failure.disposition:
            self._unusual.append((position, failure.disposition))
        return None

    def _located(self, lines: list[bytes]) -> Iterator[bytes]:
        """Yield lines; tell the tally where each starts."""
        position = self._offset(self._next)
        for line in lines:
            self._terms.tally.start = position
            yield line
            position += len(line)

    def _ends_range(self, failure: Failure) -> bool:
        """Count a failure; return whether it ends the range."""
        if not self._terms.ignore_errors:
            return True
        self._terms.breaker.count(failure, failure.offset)
        return self._terms.breaker.open

    def take_new_bytes(self) -> int:
        """Return the number of output bytes since the last call."""
        fresh = len(self._output) - self._measured
        self._measured = len(self._output)
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
        settled = SettledSpan.of(
            self.start,
            end - self.start,
            records=self._records,
            emitted=self._emitted,
            dropped=self._dropped,
            failed=len(self._errors),
            output=self._output,
            errors=b"".join(self._errors),
            source=source if self._terms.check_input else None,
            notes=SpanNotes.of(self._records, self._unusual, self._counts),
        )
        self.start = end
        self._output = bytearray()
        self._errors = []
        self._unusual = []
        self._counts = {}
        self._records = self._emitted = self._dropped = self._measured = 0
        self._terms.write(settled)
