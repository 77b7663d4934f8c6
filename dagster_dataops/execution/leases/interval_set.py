"""IntervalSet: a set of byte positions, as sorted intervals."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from dagster_dataops.datasets.lines import Interval


class IntervalSet:
    """A set of byte positions, held as sorted intervals that do not overlap.

    Args:
        intervals: Its intervals; they may not overlap.
    """

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        ordered = sorted(intervals)
        self._starts = [start for start, _ in ordered]
        self._ends = [end for _, end in ordered]
        self.size = sum(end - start for start, end in ordered)

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __iter__(self) -> Iterator[Interval]:
        return map(Interval, self._starts, self._ends)

    def covers(self, start: int, end: int) -> bool:
        """Return whether all positions of [start, end) are in the set."""
        place = bisect_right(self._starts, start) - 1
        return place >= 0 and end <= self._ends[place]

    def within(self, start: int, end: int) -> list[Interval]:
        """Return the intervals of the set in [start, end)."""
        intervals = []
        place = bisect_right(self._ends, start)
        while place < len(self._starts) and self._starts[place] < end:
            intervals.append(Interval(max(start, self._starts[place]), min(end, self._ends[place])))
            place += 1
        return intervals

    def remove(self, start: int, end: int) -> None:
        """Remove [start, end), as far as it is in the set."""
        if start >= end:
            return
        first = last = bisect_right(self._ends, start)
        rest: list[Interval] = []
        while last < len(self._starts) and self._starts[last] < end:
            before, after = self._starts[last], self._ends[last]
            rest += [
                Interval(*interval)
                for interval in ((before, start), (end, after))
                if interval[0] < interval[1]
            ]
            self.size -= min(end, after) - max(start, before)
            last += 1
        self._starts[first:last] = [start for start, _ in rest]
        self._ends[first:last] = [end for _, end in rest]

    def add(self, start: int, end: int) -> None:
        """Add [start, end), which may not overlap an interval of the set."""
        if start >= end:
            return
        place = bisect_right(self._starts, start)
        self._starts.insert(place, start)
        self._ends.insert(place, end)
        self.size += end - start

    def pop(self) -> Interval:
        """Remove and return the first interval."""
        first = Interval(self._starts.pop(0), self._ends.pop(0))
        self.size -= first.end - first.start
        return first
