"""Random access: read the items of a source by index, in any order."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, Final
from weakref import finalize

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.item_failures import FailureCounter

MISSING: Final = object()


class IndexedItems(ABC):
    """The items of an open source, by index.

    Attributes:
        size: The number of indices, including those without a valid item.
    """

    size: int

    @abstractmethod
    def item(self, number: int) -> Any:
        """Return the item at an index; `MISSING` if it failed and the failure was handled."""


class ConcatenatedItems(IndexedItems):
    """The items of several sources, with consecutive indices."""

    def __init__(self, parts: Sequence[IndexedItems]) -> None:
        self._parts = parts
        self._firsts = list(accumulate((part.size for part in parts), initial=0))
        self.size = self._firsts.pop()

    @override
    def item(self, number: int) -> Any:
        at = bisect_right(self._firsts, number) - 1
        return self._parts[at].item(number - self._firsts[at])


class UnreadItem:
    """An item of a source that was chosen by its place; ``read`` returns it."""

    __slots__ = ("read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read


def unreadable() -> DataPipelineError:
    """Return the error of an item that counts in the order of all ranks, and cannot be read."""
    return DataPipelineError(
        "a sample cannot be read, though its dataset is as it was indexed; the log has the reason. "
        "Ranks and workers read their own samples alone, so it cannot be left out on all of them: "
        "mend the dataset, and go on from the last state"
    )


def read_item(item: Any) -> Any:
    """Return an item, read now if it is not read yet."""
    return item.read() if type(item) is UnreadItem else item


def changed_item(change: Callable[[Any], Any], item: Any) -> Any:
    """Return what a function makes of an item; of an unread one when it is read."""
    if type(item) is not UnreadItem:
        return change(item)
    read = item.read
    return UnreadItem(lambda: change(read()))


class UnreadItems(IndexedItems):
    """The items of a source, unread. It stays open until the last of them is dropped."""

    def __init__(self, opening: AbstractContextManager[IndexedItems]) -> None:
        stack = ExitStack()
        self._items = stack.enter_context(opening)
        self.size = self._items.size
        finalize(self, stack.close)

    @override
    def item(self, number: int) -> UnreadItem:
        return UnreadItem(partial(self._read, number))

    def _read(self, number: int) -> Any:
        item = self._items.item(number)
        if item is MISSING:  # it was to be there; the order of all ranks counts it
            raise unreadable()
        return item


def _is_unknown() -> bool:  # no lambda, which cannot be sent to workers
    return False


@dataclass
class RandomAccess:
    """Random access to the items of a source.

    Attributes:
        counter: Counts the items that cannot be read.
        open_items: Opens the source for reading, given the counter.
        is_sure: Returns whether all items can be read, as far as is known without reading them.
    """

    counter: FailureCounter
    open_items: Callable[[FailureCounter], AbstractContextManager[IndexedItems]]
    is_sure: Callable[[], bool] = _is_unknown

    def opened(self, *, unread: bool = False) -> AbstractContextManager[IndexedItems]:
        """Open the source for reading.

        Args:
            unread: Whether items are given as `UnreadItem`. Where failed items are passed over,
                this is done only if all can be read: they count in the order of all ranks.

        Raises:
            StreamSourceError: The source cannot be read.
        """
        opening = self.open_items(self.counter)
        is_unread = unread and (self.counter.raises or self.is_sure())
        return nullcontext(UnreadItems(opening)) if is_unread else opening


@dataclass(frozen=True)
class ShardSlice:
    """Every ``among``-th place, starting at ``first``; or the ``first``-th of ``among`` runs.

    All shards have the same size, unless ``uneven`` is set. Then the last places are used too, and
    the first runs have one more.
    """

    first: int = 0
    among: int = 1
    uneven: bool = True
    contiguous: bool = False

    def places(self, size: int) -> range:
        """Return the places of this shard among ``size`` places."""
        each, rest = divmod(size, self.among)
        if self.contiguous:
            rest = rest if self.uneven else 0
            start = self.first * each + min(self.first, rest)
            return range(start, start + each + (self.first < rest))
        end = size if self.uneven else size - rest
        return range(self.first, end, self.among)
