"""``skip``, ``take`` and ``shard``: select items by position."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.item_failures import FailureCounter, FailureHandler
from dagster_dataops.streams.core.random_access import MISSING, RandomAccess, ShardSlice
from dagster_dataops.streams.core.stage import Cursor, ReadContext, State, UnaryStage


@dataclass(eq=False)
class Skip(UnaryStage):
    """Skip the first ``num_examples`` items. Whether they were skipped is saved."""

    name: ClassVar[str] = "skip"
    keeps_step: ClassVar[bool] = True
    takes_unread: ClassVar[bool] = True
    elastic: ClassVar[bool] = True  # within an epoch; each rank skips items of its own
    saved: ClassVar[tuple[str, ...]] = ("_done",)
    num_examples: int

    @override
    def reset(self) -> None:
        self._done = False

    @override
    def items(self) -> Iterator[Any]:
        items = self.source.items()
        if not self._done:
            for _ in islice(items, self.num_examples):
                pass
            self._done = True
        yield from items


@dataclass(eq=False)
class Take(UnaryStage):
    """Yield the first ``num_examples`` items. The number of yielded ones is saved."""

    name: ClassVar[str] = "take"
    keeps_step: ClassVar[bool] = True
    takes_unread: ClassVar[bool] = True
    saved: ClassVar[tuple[str, ...]] = ("_taken",)
    num_examples: int

    @property
    @override
    def finitude(self) -> Finitude:
        return Finitude.FINITE

    @override
    def reset(self) -> None:
        self._taken = 0

    @override
    def items(self) -> Iterator[Any]:
        for item in islice(self.source.items(), self.num_examples - self._taken):
            self._taken += 1
            yield item


@dataclass(eq=False)
class Shard(UnaryStage):
    """Yield every ``num_shards``-th item, starting at index ``shard_idx``.

    With ``allow_uneven``, this includes an item of the last, incomplete group. Whether an item was
    yielded is saved then: if so, the items of the other shards come first.
    """

    name: ClassVar[str] = "shard"
    takes_unread: ClassVar[bool] = True
    saved: ClassVar[tuple[str, ...]] = ("_begun",)
    shard_idx: int
    num_shards: int
    allow_uneven: bool

    @property
    @override
    def share(self) -> tuple[int, int]:
        return self.shard_idx, self.num_shards

    @override
    def open(self, context: ReadContext) -> Cursor:
        part = ShardSlice(self.shard_idx, self.num_shards, self.allow_uneven)
        return self.upstream.open_part(context, part) or super().open(context)

    @override
    def reset(self) -> None:
        self._begun = False

    @override
    def items(self) -> Iterator[Any]:
        items, size = self.source.items(), self.num_shards
        if not self.allow_uneven:
            while len(group := list(islice(items, size))) == size:
                yield group[self.shard_idx]
            return
        for item in islice(items, size - 1 if self._begun else self.shard_idx, None, size):
            self._begun = True
            yield item


@dataclass(eq=False)
class ContiguousShard(UnaryStage):
    """Yield the items of one of ``num_shards`` runs of consecutive items.

    A source with random access is read from the first item of the run. Other streams are read
    twice: once to count their items. The number of items is saved, and that of the read ones.
    """

    name: ClassVar[str] = "contiguous_shard"
    takes_unread: ClassVar[bool] = True
    saved: ClassVar[tuple[str, ...]] = ("_size", "_taken")
    shard_idx: int
    num_shards: int
    allow_uneven: bool

    @property
    @override
    def share(self) -> tuple[int, int]:
        return self.shard_idx, self.num_shards

    def _part(self) -> ShardSlice:
        return ShardSlice(self.shard_idx, self.num_shards, self.allow_uneven, contiguous=True)

    @override
    def open(self, context: ReadContext) -> Cursor:
        part = self.upstream.open_part(context, self._part())
        if part is not None:
            return part
        access = self.upstream.access(context)
        if access is None:
            return super().open(context)
        return _RunCursor(access, self._part(), unread=context.unread)

    @override
    def begin(self, context: ReadContext) -> None:
        self._context = replace(context, failures=_Uncounted(context.failures.on_error))

    @override
    def reset(self) -> None:
        self._size: int | None = None
        self._taken = 0

    @override
    def restore(self, state: State) -> None:
        super().restore(state)
        uncounted = self._size is None and not self._taken
        if not uncounted and type(self._size) is not int:
            msg = f"size of stage {self.title} is of type {type(self._size).__name__}, not int"
            raise TypeError(msg)

    @override
    def items(self) -> Iterator[Any]:
        if self._size is None:
            counted = self.upstream.open(self._context.of_input(self.upstream))
            counted.restore(self.source.state())
            self._size = sum(1 for _ in counted.items())
        places = self._part().places(self._size)
        first = 0 if self._taken else places.start
        for item in islice(self.source.items(), first, first + len(places) - self._taken):
            self._taken += 1
            yield item


class _Uncounted(FailureHandler):
    """Failures of items that are only counted; they are handled when the items are read."""

    @override
    def handle(self, counter: FailureCounter, item: Any, error: Exception) -> None:
        if self.on_error == "raise":
            super().handle(counter, item, error)
        counter.count += 1


class _RunCursor(Cursor):
    """Read consecutive items of a source with random access, from the first one on."""

    saved: ClassVar[tuple[str, ...]] = ("failed", "_passed")

    def __init__(self, access: RandomAccess, part: ShardSlice, *, unread: bool) -> None:
        self._access, self._part, self._unread = access, part, unread
        self.counter = access.counter
        self._passed = 0

    @override
    def reset(self) -> None:
        self._passed = 0

    @override
    def items(self) -> Iterator[Any]:
        with self._access.opened(unread=self._unread) as source:
            for number in self._part.places(source.size)[self._passed :]:
                self._passed += 1
                element = source.item(number)
                if element is not MISSING:
                    yield element
