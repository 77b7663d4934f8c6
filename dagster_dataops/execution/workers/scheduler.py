"""Scheduler: cuts what is to do into ranges of about a quarter second of work each.

How long a range takes is not known beforehand. The first is a single record; then who is still
alone is given much, to give back after some milliseconds what it has not begun: often it is through
by then. Each later range is sized by how fast the ones before it went. Near the end ranges shrink,
so that all workers end at about the same time. Quick records may be followed by slow ones: a worker
whose range takes too long gives back what it has not begun.
"""

from collections import deque
from typing import Final

from dagster_dataops.datasets.durable_files import read_range
from dagster_dataops.datasets.lines import Interval, next_line_start
from dagster_dataops.execution.workers.protocol import Mode, Range

_TARGET_SECONDS: Final = 0.25
_MAX_BYTES: Final = 4 << 20
_MIN_BYTES: Final = 64 << 10
_GROWTH: Final = 16
_RANGES_A_WORKER: Final = 8
_QUICK_SECONDS: Final = 0.1
_TELLING_SECONDS: Final = 0.002
_TAIL: Final = 64  # no range of a small input is a smaller part of it
_BRIEF_SECONDS: Final = 0.05  # no second worker would be there in time
_TRIAL_SECONDS: Final = 0.008
_PATIENCE_SECONDS: Final = 0.5  # twice what ranges are cut for; the rest is for whoever is free


class Scheduler:
    """What is left to do.

    Args:
        descriptor: The open input.
        todo: What is not settled, in order.
        workers: How many will share it.
    """

    def __init__(self, descriptor: int, todo: list[Interval], workers: int) -> None:
        self._descriptor = descriptor
        self._gaps = deque(todo)
        self._returned: deque[Range] = deque()
        self._workers = workers
        self._left = sum(end - start for start, end in todo)
        share = self._left // (_RANGES_A_WORKER * workers)
        self._most = min(max(share, _MIN_BYTES), _MAX_BYTES)
        self._least = max(1, min(self._left // _TAIL, _MIN_BYTES))
        self._size = 1
        self._seconds_per_byte: float | None = None
        self._measured = 0  # ranges
        self._telling = False  # whether what was measured says how long the rest takes

    def __bool__(self) -> bool:
        return bool(self._gaps or self._returned)

    @property
    def depth(self) -> int:
        """How many ranges a worker should have: two where they are quick, so it never waits."""
        many = self._left > _MIN_BYTES * self._workers
        quick = self._size * (self._seconds_per_byte or 1.0) < _QUICK_SECONDS
        return 2 if many and quick else 1

    @property
    def seconds_left(self) -> float:
        """How long one worker would take for what is left; 0 as long as nothing tells of that."""
        return self._left * (self._seconds_per_byte or 0.0) if self._telling else 0.0

    def has_more_than(self, ranges: int) -> bool:
        """Return whether more than so many ranges can be taken, for each of them has a record.

        Only the first lines are counted, which may be fewer than there are.
        """
        found = len(self._returned)
        for start, end in self._gaps:
            lines = read_range(self._descriptor, start, min(end - start, _MIN_BYTES))
            found += lines.count(b"\n") + (not lines.endswith(b"\n"))
            if found > ranges:
                return True
        return found > ranges

    def take(self, sharing: int) -> Range | None:
        """Return the next range, or ``None`` if nothing is left.

        Args:
            sharing: How many workers there are.
        """
        if self._returned:
            return self._returned.popleft()
        if not self._gaps:
            return None
        start, end = self._gaps.popleft()
        size, patience = self._size_for(sharing), _PATIENCE_SECONDS
        if sharing == 1 and self._measured == 1:
            size, patience = _MAX_BYTES, _TRIAL_SECONDS
        elif sharing == 1 and self._is_brief():
            size = self._left
        cut = next_line_start(self._descriptor, min(start + size, end), end)
        if cut < end:
            self._gaps.appendleft(Interval(cut, end))
        self._left -= cut - start
        return Range(start, cut, patience=patience)

    def _is_brief(self) -> bool:
        """Whether one worker will be done before another would be there."""
        pace = self._seconds_per_byte or 1.0
        return self._measured > 1 and self._left * pace < _BRIEF_SECONDS

    def _size_for(self, sharing: int) -> int:
        """Return a fair share of what is left at most, so that all end at about the same time."""
        return min(self._size, max(self._left // (2 * sharing), self._least))

    def measured(self, length: int, seconds: float) -> None:
        """Take note that ``length`` bytes took ``seconds``."""
        self._measured += 1
        # Nothing tells less than the first record, for which all is imported and set up, and a
        # moment, which is that of a range and not of what is in it.
        if self._measured > 1 and seconds >= _TELLING_SECONDS:
            self._telling = True
        pace = max(seconds, 1e-6) / max(length, 1)
        known = self._seconds_per_byte if self._measured != 2 else None
        self._seconds_per_byte = pace if known is None else (known + pace) / 2
        wanted = int(_TARGET_SECONDS / self._seconds_per_byte)
        self._size = max(1, min(wanted, max(self._size, length) * _GROWTH, self._most))

    def put_back(self, gap: Interval) -> None:
        """Put first in the queue again what was given out and not begun: it is cut anew."""
        self._gaps.appendleft(gap)
        self._left += gap.end - gap.start

    def give_back(self, given: Range) -> None:
        """Put a range first in the queue again."""
        if given.start < given.end:
            patience = _PATIENCE_SECONDS if given.mode is Mode.NORMAL else given.patience
            self._returned.appendleft(given._replace(patience=patience))

    def give_back_after_death(self, given: Range, settled_to: int) -> Range | None:
        """Put a dead worker's range back, ever more carefully.

        Args:
            given: The range that the worker was in.
            settled_to: Up to where it is settled.

        Returns:
            The range of the record that has now killed its worker a third time, the last time
            alone in it; ``None`` as long as none has.
        """
        start = max(given.start, settled_to)
        if start >= given.end:
            return None
        if given.mode is Mode.NORMAL:
            most = next_line_start(self._descriptor, start + self._most, given.end)
            if most < given.end:
                self.put_back(Interval(most, given.end))
            self.give_back(Range(start, most, Mode.CAREFUL))
            return None
        suspect_end = next_line_start(self._descriptor, start + 1, given.end)
        if given.mode is Mode.ALONE:
            return Range(start, suspect_end, Mode.ALONE)
        self.give_back(Range(suspect_end, given.end))
        self.give_back(Range(start, suspect_end, Mode.ALONE))
        return None
