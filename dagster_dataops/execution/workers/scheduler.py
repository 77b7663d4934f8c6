"""Scheduler: cut the unsettled input into ranges of about a quarter second of work each.

The duration of a range is not known beforehand. The first range is a single record. A worker that
is still alone then gets a large range, and returns after 8 ms the lines that it has not begun;
small inputs are often finished by then. The speed of the earlier ranges determines the size of the
later ones. Ranges shrink near the end, so that all workers end at about the same time. Slow records
may follow quick ones: a worker whose range takes too long returns the lines that it has not begun.
"""

from collections import deque
from typing import Final

from dagster_dataops.datasets.batches import BatchStarts, cut_near, next_cut
from dagster_dataops.datasets.lines import Interval, next_line_start
from dagster_dataops.execution.workers.protocol import Mode, Range
from dagster_dataops.foundation.places.object_file import ObjectFile
from dagster_dataops.foundation.places.range_source import Readable, read_range

_TARGET_SECONDS: Final = 0.25
_MAX_BYTES: Final = 4 << 20
_MIN_BYTES: Final = 64 << 10
_GROWTH: Final = 16
_RANGES_A_WORKER: Final = 8
_QUICK_SECONDS: Final = 0.1
_MEASURABLE_SECONDS: Final = 0.002
_TAIL: Final = 64  # a range is at least this fraction of a small input
_OF_OBJECT: Final = (4 << 20, 16 << 20, 16)  # least and most bytes and tail: a range costs requests
_BRIEF_SECONDS: Final = 0.05  # seconds; less than the start of a second worker takes
_TRIAL_SECONDS: Final = 0.008
_PATIENCE_SECONDS: Final = 0.5  # times the target; then other workers get the rest of the range


class Scheduler:
    """The unsettled input.

    Args:
        descriptor: The open input.
        todo: The unsettled intervals, in order.
        workers: Number of workers that share them.
        batches: Where ranges may begin, if the operator takes batches; otherwise at any line.
    """

    def __init__(
        self,
        descriptor: Readable,
        todo: list[Interval],
        workers: int,
        batches: BatchStarts | None = None,
    ) -> None:
        self._descriptor = descriptor
        self._batches = batches
        self._gaps = deque(todo)
        self._returned: deque[Range] = deque()
        self._workers = workers
        self._left = sum(end - start for start, end in todo)
        self._limit_ranges()
        self._size = 1
        self._seconds_per_byte: float | None = None
        self._measured = 0  # ranges
        self._reliable = False  # whether a range took long enough to estimate the time left

    def _limit_ranges(self) -> None:
        """Set the largest and the smallest size of a range; a request to a store takes time."""
        remote = isinstance(self._descriptor, ObjectFile)
        least, most, tail = _OF_OBJECT if remote else (_MIN_BYTES, _MAX_BYTES, _TAIL)
        share = self._left // (_RANGES_A_WORKER * self._workers)
        self._most = min(max(share, least), most)
        self._least = max(1, min(self._left // tail, least))

    def __bool__(self) -> bool:
        return bool(self._gaps or self._returned)

    def add(self, gaps: list[Interval]) -> None:
        """Add unsettled intervals behind the others."""
        self._gaps.extend(gaps)
        self._left += sum(end - start for start, end in gaps)
        self._limit_ranges()

    def take_rest(self) -> list[Interval]:
        """Remove and return the intervals that no worker was given; returned ranges stay."""
        rest = list(self._gaps)
        self._gaps.clear()
        self._left -= sum(end - start for start, end in rest)
        return rest

    @property
    def depth(self) -> int:
        """Number of ranges for a worker: two if they are quick, so that it never waits.

        The trial of a lone worker gives lines back. It is alone, so that they come next.
        """
        if self._measured < 2:
            return 1
        many = self._left > _MIN_BYTES * self._workers
        quick = self._size * (self._seconds_per_byte or 1.0) < _QUICK_SECONDS
        return 2 if many and quick else 1

    @property
    def seconds_left(self) -> float:
        """Seconds that one worker would take for the rest; 0 if unknown."""
        return self._left * (self._seconds_per_byte or 0.0) if self._reliable else 0.0

    def has_more_than(self, ranges: int) -> bool:
        """Return whether the first lines are enough for more than ``ranges`` ranges."""
        count = len(self._returned)
        for start, end in self._gaps:
            lines = read_range(self._descriptor, start, min(end - start, _MIN_BYTES))
            count += lines.count(b"\n") + (not lines.endswith(b"\n"))
            if count > ranges:
                return True
        return count > ranges

    def take(self, sharing: int) -> Range | None:
        """Return the next range, or ``None`` if nothing is left."""
        if self._returned:
            return self._returned.popleft()
        if not self._gaps:
            return None
        start, end = self._gaps.popleft()
        share = max(self._left // (2 * sharing), self._least)  # of the rest
        size, patience = min(self._size, share), _PATIENCE_SECONDS
        if sharing == 1 and self._measured == 1:
            size, patience = _MAX_BYTES, _TRIAL_SECONDS
        elif sharing == 1 and self._is_brief():
            size = self._left
        if self._batches is not None and self._batches.at_or_after(start, end) > start:
            size = 1  # the rest of a batch alone: batches are counted from the start of a range
        cut = cut_near(self._descriptor, start, size, end, self._batches)
        if cut < end:
            self._gaps.appendleft(Interval(cut, end))
        self._left -= cut - start
        return Range(start, cut, patience=patience)

    def _is_brief(self) -> bool:
        """Return whether one worker will finish before another one could start."""
        pace = self._seconds_per_byte or 1.0
        return self._measured > 1 and self._left * pace < _BRIEF_SECONDS

    def measured(self, length: int, seconds: float) -> None:
        """Record that ``length`` bytes took ``seconds``."""
        self._measured += 1
        # The first record includes imports and set-up. A very short time is the overhead of a range
        # and says nothing about its records.
        if self._measured > 1 and seconds >= _MEASURABLE_SECONDS:
            self._reliable = True
        pace = max(seconds, 1e-6) / max(length, 1)
        known = self._seconds_per_byte if self._measured != 2 else None
        self._seconds_per_byte = pace if known is None else (known + pace) / 2
        wanted = int(_TARGET_SECONDS / self._seconds_per_byte)
        self._size = max(1, min(wanted, max(self._size, length) * _GROWTH, self._most))

    def put_back(self, gap: Interval) -> None:
        """Put returned lines that were not begun first in the queue, to be cut again."""
        self._gaps.appendleft(gap)
        self._left += gap.end - gap.start

    def give_back(self, order: Range) -> None:
        """Put a range first in the queue."""
        if order.start < order.end:
            patience = _PATIENCE_SECONDS if order.mode is Mode.NORMAL else order.patience
            self._returned.appendleft(order._replace(patience=patience))

    def give_back_after_death(self, order: Range, journaled_to: int) -> Range | None:
        """Put the range of a dead worker back, in smaller parts after each death.

        Args:
            order: The range that the worker was processing.
            journaled_to: The byte up to which it is settled.

        Returns:
            The range of a record that has killed its worker for the third time, the last time
            alone; ``None`` if there is none yet.
        """
        start = max(order.start, journaled_to)
        if start >= order.end:
            return None
        if order.mode is Mode.NORMAL:
            # Only the batch that was being processed is divided.
            most = start + (1 if self._batches else self._most)
            most = next_cut(self._descriptor, most, order.end, self._batches)
            if most < order.end:
                self.put_back(Interval(most, order.end))
            self.give_back(Range(start, most, Mode.CAREFUL))
            return None
        suspect_end = next_line_start(self._descriptor, start + 1, order.end)
        if order.mode is Mode.ALONE:
            return Range(start, suspect_end, Mode.ALONE)
        self.give_back(Range(suspect_end, order.end))
        self.give_back(Range(start, suspect_end, Mode.ALONE))
        return None
