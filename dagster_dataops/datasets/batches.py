"""Batches of lines, with boundaries at fixed records of the file."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from dagster_dataops.datasets.lines import (
    Interval,
    Line,
    block_end,
    count_records,
    iterate_lines,
    next_line_start,
)
from dagster_dataops.foundation.places.range_source import Readable


def batches_of(
    descriptor: Readable, intervals: Iterable[Interval], first: int, size: int
) -> Iterator[list[Line]]:
    """Yield the lines of intervals in batches.

    Batches end before every record whose index in the file is a multiple of ``size``, and at the
    end of an interval. So the batches of an interval that begins and ends at such records are the
    same whatever is around it. Blank lines are skipped.

    Args:
        descriptor: Of the open file.
        intervals: Parts of the file, in order.
        first: Byte position of the first line of the file.
        size: Records a batch.
    """
    position, index = first, 0
    for interval in intervals:
        index += count_records(descriptor, Interval(position, interval.start))
        batch: list[Line] = []
        for line in iterate_lines(descriptor, [interval]):
            batch.append(line)
            index += 1
            if index % size == 0:
                yield batch
                batch = []
        if batch:
            yield batch
        position = interval.end


class BatchStarts:
    """Where the batches of a file begin.

    Args:
        starts: The byte positions, in order.
    """

    def __init__(self, starts: Iterable[int] = ()) -> None:
        self._starts = array("Q", starts)

    @classmethod
    def of(cls, descriptor: Readable, content: Interval, size: int) -> "BatchStarts":
        """Return where the batches of a file begin.

        Args:
            descriptor: Of the open file.
            content: Bytes of the file that hold lines.
            size: Records a batch.
        """
        lines = iterate_lines(descriptor, [content])
        return cls(line.start for n, line in enumerate(lines) if n % size == 0)

    def within(self, interval: Interval) -> list[int]:
        """Return the starts in an interval."""
        first = bisect_left(self._starts, interval.start)
        return list(self._starts[first : bisect_left(self._starts, interval.end)])

    def add(self, starts: Iterable[int]) -> None:
        """Add starts, of any part of the file."""
        self._starts = array("Q", sorted({*self._starts, *starts}))

    def at_or_after(self, position: int, end: int) -> int:
        """Return the first start in [position, end]; ``end`` if there is none."""
        number = bisect_left(self._starts, position)
        return min(self._starts[number], end) if number < len(self._starts) else end


def cut_near(
    source: Readable, start: int, size: int, end: int, batches: BatchStarts | None = None
) -> int:
    """Return where a range of about ``size`` bytes from ``start`` may end; at most ``end``.

    Args:
        source: The open file.
        start: The start of the range.
        size: The wanted size.
        end: The end of the lines.
        batches: Where batches begin; ``None`` if a range may begin at any line.
    """
    if batches is None:
        return block_end(source, start, size, end)
    return batches.at_or_after(min(start + size, end), end)


def next_cut(
    descriptor: Readable, position: int, end: int, batches: BatchStarts | None = None
) -> int:
    """Return the first place in [position, end] at which a range may begin, or ``end``.

    Args:
        descriptor: Of the open file.
        position: Where to look from.
        end: The end of the lines.
        batches: Where batches begin; ``None`` if a range may begin at any line.
    """
    if batches is None:
        return next_line_start(descriptor, position, end)
    return batches.at_or_after(position, end)
