"""WorkList: the intervals of one input whose records have no outcome yet."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dagster_dataops.datasets.batches import BatchStarts, cut_near
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import Interval, content_interval, next_line_start
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import Readable
from dagster_dataops.operators.definition.operator import Operator


class Orders(NamedTuple):
    """Changes of the work.

    Attributes:
        more: Intervals of the input that are open as well.
        give_back: Gets the intervals that no worker was given, if others are to have them.
    """

    more: list[Interval]
    give_back: Callable[[list[Interval]], None] | None = None


class WorkList:
    """The open intervals of one input, in order: their records have no outcome yet.

    Args:
        operator: The operator.
        dataset: Its input.
        content: Bytes of the input that hold lines; by default as the file says.

    Attributes:
        dataset: The input.
        open: The open intervals. Each begins and ends at line ends.
        batch_size: Records of a batch; 0 if the operator takes single records.
    """

    def __init__(
        self, operator: Operator, dataset: JsonlDataset, content: Interval | None = None
    ) -> None:
        invocation = operator.__dataops__
        self.dataset = dataset
        self._content = content_interval(dataset.location) if content is None else content
        self.open: list[Interval] = []
        self.batch_size = invocation.resolved.batch_size if invocation.spec.batch else 0
        self._batch_starts: BatchStarts | None = None

    @property
    def content(self) -> Interval:
        """Bytes of the input that hold lines. All records in them need an outcome."""
        return self._content

    @property
    def checks_input(self) -> bool:
        """Whether spans need a checksum of their input, because the dataset has no digest."""
        return self.dataset.fingerprint is None

    @property
    def growing(self) -> bool:
        """Whether intervals may be added."""
        return False

    def take_orders(self) -> Orders:
        """Return the changes of the work since the last call."""
        return Orders([])

    def finish(self, start: int, end: int) -> None:
        """Record that all records in bytes [start, end) have outcomes."""

    def batch_starts(self, source: Readable) -> BatchStarts | None:
        """Return where ranges may begin if the operator takes batches; otherwise ``None``."""
        if self.batch_size and self._batch_starts is None:
            self._batch_starts = BatchStarts.of(source, self.content, self.batch_size)
        return self._batch_starts

    def may_be_run(self, source: Readable, interval: Interval) -> bool:
        """Return whether an interval is open, and begins and ends where ranges may."""
        number = bisect_right(self.open, interval.start, key=lambda interval: interval.start) - 1
        around = self.open[number] if number >= 0 else Interval(0, 0)
        inside = interval.start < interval.end <= around.end
        return inside and all(self._is_cut(source, place, around) for place in interval)

    def _is_cut(self, source: Readable, place: int, around: Interval) -> bool:
        if place in around:
            return True
        starts = self.batch_starts(source)
        if starts is not None:
            return starts.at_or_after(place, around.end) == place
        return next_line_start(source, place, around.end) == place

    def ranges(self, most_bytes: int) -> Iterator[Interval]:
        """Yield the open intervals in ranges that can be run one by one, in any order.

        A range begins and ends at line ends, and for an operator that takes batches where batches
        begin: all records of a batch are in one range.

        Args:
            most_bytes: Size after which a range ends, at the next possible place; in a compressed
                input where a frame near it ends.
        """
        with opened(self.dataset.location) as source:
            starts = self.batch_starts(source)
            for start, last in self.open:
                position = start
                while position < last:
                    size = most_bytes
                    if starts is not None and starts.at_or_after(position, last) > position:
                        size = 0  # the rest of a batch
                    end = cut_near(source, position, size, last, starts)
                    yield Interval(position, end)
                    position = end
