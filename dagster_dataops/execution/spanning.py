"""SpanLoop: works through byte ranges of the input, settling a span at least twice a second.

What worker processes and single mode run. A span ends after a megabyte of input, after half a
second of work, or when its output fills the buffer: so a kill costs at most that, whatever an
operator takes for a record. Larger blocks would be slower: they leave the processor's cache.
"""

import math
import time
from collections.abc import Callable
from typing import Final

from dagster_dataops.checkpoints.outputs import Settled
from dagster_dataops.datasets.lines import Interval, next_line_start, read_lines, split_lines
from dagster_dataops.execution.bell import Bell
from dagster_dataops.execution.clones import Original
from dagster_dataops.execution.failures import Failed, error_line
from dagster_dataops.execution.settling import Settle

SETTLE_SECONDS: Final = 0.5
_RINGS: Final = 10  # how often it is looked in that time whether a record took long
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
        announce: Told the byte position of every record before it is begun.

    Attributes:
        position: Up to where the range of the last `run` was settled.
    """

    def __init__(  # noqa: PLR0913 - made in few places
        self,
        settle: Settle,
        descriptor: int,
        write: Callable[[Settled], None],
        *,
        operator: str,
        ignore_errors: bool,
        check_input: bool,
        announce: Callable[[int], None] | None = None,
    ) -> None:
        self._settle = settle
        self._descriptor = descriptor
        self.emit = write
        self._operator = operator
        self._ignore_errors = ignore_errors
        self.check_input = check_input
        self._slice = 1
        self._announce = announce
        self._original = Original()
        self.position = 0
        self.bell = Bell(SETTLE_SECONDS / _RINGS)

    def run(
        self, start: int, end: int, *, one_by_one: bool = False, patience: float = math.inf
    ) -> Failed | None:
        """Settle the lines of [start, end).

        Args:
            start: Where a line starts.
            end: Where another one starts, or the end of the file.
            one_by_one: Whether every record is a span of its own.
            patience: The seconds after which no further record is begun.

        Returns:
            The first failure if failures are not ignored; what came before it is settled.
        """
        self.bell.start()
        fixed_slice = 1 if one_by_one else 0
        until = time.monotonic() + patience
        self.position = start
        while self.position < end:
            start = self.position
            cut = next_line_start(self._descriptor, min(start + BLOCK_BYTES, end), end)
            pending = _Pending(self, read_lines(self._descriptor, Interval(start, cut)), start)
            try:
                failed = self._run(pending, fixed_slice, until)
            finally:  # an interrupt as well leaves what was finished settled
                pending.flush()
                self.position = pending.start
            if failed is not None or time.monotonic() >= until:
                return failed
        return None

    def _run(self, pending: "_Pending", fixed_slice: int, until: float) -> Failed | None:
        settled_at = began = time.monotonic()
        while not pending.exhausted:
            if self._announce is not None:
                self._slice = 1
                self._announce(pending.position)
            self.bell.hush()
            failed = pending.advance(self._settle, fixed_slice or self._slice)
            self._original.end_clone()
            if failed is not None:
                return failed
            now = time.monotonic()
            size = pending.take_new_bytes()
            self._adapt(now - began, size)
            began = now
            if now >= until:
                break
            late = now >= settled_at + SETTLE_SECONDS
            if late or pending.size >= _BUFFER_BYTES or fixed_slice:
                pending.flush()
                settled_at = now
        return None

    def _adapt(self, seconds: float, size: int) -> None:
        if seconds < _SLICE_SECONDS and size < _SLICE_BYTES:
            self._slice = min(self._slice * 2, _MAX_SLICE)
        elif seconds > 2 * _SLICE_SECONDS or size > 2 * _SLICE_BYTES:
            self._slice = max(self._slice // 2, 1)

    def close(self) -> None:
        """Run no more."""
        self.bell.stop()

    def refuse(self, failed: Failed) -> Failed | None:
        """Return ``failed`` if it ends the range, ``None`` if it is to be written down."""
        return None if self._ignore_errors else failed

    def error_line(self, failed: Failed, **before: int) -> bytes:
        """Return the error line of a record, before which that much of its span comes."""
        return error_line(failed, self._operator, **before)


class _Pending:
    """The lines of a block, and the span under way.

    A slice of lines counts once it is through. An interrupt during an operator's call keeps what
    came before; one that falls between two records rolls the slice back, so that outputs and the
    count of records they belong to never disagree.
    """

    def __init__(self, loop: SpanLoop, block: bytes, start: int) -> None:
        self._loop = loop
        self._block = block
        self._block_start = start
        self._lines = split_lines(block)
        self._next = 0  # first line that does not count yet
        self._anchor = (0, start)  # a line and its byte position, for _offset
        self.start = start  # of the span
        # One growing buffer: orjson allocates 1 KB for each of its results, and keeping those
        # alive until the span is written costs four times the encoding.
        self._output = bytearray()
        self._errors: list[bytes] = []
        self._records = 0
        self._emitted = 0
        self._dropped = 0
        self._measured = 0

    @property
    def exhausted(self) -> bool:
        """Whether every line is consumed."""
        return self._next >= len(self._lines)

    @property
    def position(self) -> int:
        """Byte position of the next line."""
        return self._offset(self._next)

    @property
    def size(self) -> int:
        """Output bytes of the span so far."""
        return len(self._output)

    def advance(self, settle: Settle, count: int) -> Failed | None:
        """Settle the next ``count`` lines, or fewer if the loop's bell rings on the way.

        Returns:
            A failure that is not to be ignored.
        """
        mark, errors_mark, anchor = len(self._output), len(self._errors), self._anchor
        lines = self._lines[self._next : self._next + count]
        try:
            refused, interrupt = self._advance(settle, lines)
        except BaseException:  # an interrupt between two records
            del self._output[mark:], self._errors[errors_mark:]
            self._anchor = anchor
            raise
        if interrupt is not None:
            raise interrupt
        return refused

    def _advance(
        self, settle: Settle, lines: list[bytes]
    ) -> tuple[Failed | None, BaseException | None]:
        """Return a failure that is not to be ignored, and what interrupted the operator."""
        iterator, rung = iter(lines), self._loop.bell.rung
        done = blank = dropped = emitted = 0
        refused: Failed | None = None
        while True:
            stretch = settle(iterator, self._output, rung)
            done += stretch.settled
            dropped += stretch.dropped
            emitted += stretch.settled - stretch.dropped + stretch.extra
            if stretch.line is None or stretch.interrupt is not None:
                break
            if stretch.failure is None:
                blank += 1
            else:
                failed = Failed(
                    self._offset(self._next + done),
                    stretch.line.removesuffix(b"\n"),
                    stretch.failure,
                )
                refused = self._loop.refuse(failed)
                if refused:
                    break
                line = self._loop.error_line(
                    failed,
                    position=self._records + done - blank,
                    output=len(self._output),
                    dropped=self._dropped + dropped,
                )
                self._errors.append(line)
            done += 1
            if rung:
                break
        self._next += done
        self._records += done - blank
        self._emitted += emitted
        self._dropped += dropped
        return refused, stretch.interrupt

    def take_new_bytes(self) -> int:
        """Return the output bytes since the last call."""
        fresh = len(self._output) - self._measured
        self._measured = len(self._output)
        return fresh

    def _offset(self, line: int) -> int:
        known, offset = self._anchor
        offset += sum(map(len, self._lines[known:line]))
        self._anchor = (line, offset)
        return offset

    def flush(self) -> None:
        """Emit the span under way and start the next one."""
        block_end = self._block_start + len(self._block)
        end = block_end if self.exhausted else self._offset(self._next)
        if end == self.start:
            return
        first = self.start - self._block_start
        source = memoryview(self._block)[first : first + end - self.start]
        settled = Settled.of(
            self.start,
            end - self.start,
            records=self._records,
            emitted=self._emitted,
            dropped=self._dropped,
            failed=len(self._errors),
            output=self._output,
            errors=b"".join(self._errors),
            source=source if self._loop.check_input else None,
        )
        self.start = end
        self._output = bytearray()
        self._errors = []
        self._records = self._emitted = self._dropped = self._measured = 0
        self._loop.emit(settled)
