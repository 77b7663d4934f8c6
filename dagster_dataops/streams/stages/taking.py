"""``skip``, ``take`` and ``shard``: select items by position."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.random_access import ShardSlice
from dagster_dataops.streams.core.stage import Cursor, ReadContext, State, UnaryCursor, UnaryStage


@dataclass(frozen=True, eq=False)
class Skip(UnaryStage):
    """Skip the first ``num_examples`` items."""

    name: ClassVar[str] = "skip"
    num_examples: int

    @override
    def open(self, context: ReadContext) -> Cursor:
        return SkipCursor(self.upstream.open(context), self.num_examples)


class SkipCursor(UnaryCursor):
    """The state tells whether the items have been skipped."""

    def __init__(self, upstream: Cursor, count: int) -> None:
        super().__init__(upstream)
        self._count = count
        self._done = False

    @override
    def items(self) -> Iterator[Any]:
        items = self.upstream.items()
        if not self._done:
            for _ in islice(items, self._count):
                pass
            self._done = True
        yield from items

    @override
    def state(self) -> State:
        return [int(self._done), self.upstream.state()]

    @override
    def restore(self, state: State) -> None:
        done, inner = state
        self._done = bool(done)
        self.upstream.restore(inner)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._done = False
        super().restart(reset_rng=reset_rng)


@dataclass(frozen=True, eq=False)
class Take(UnaryStage):
    """Yield the first ``num_examples`` items."""

    name: ClassVar[str] = "take"
    num_examples: int

    @property
    @override
    def finitude(self) -> Finitude:
        return Finitude.FINITE

    @override
    def open(self, context: ReadContext) -> Cursor:
        return TakeCursor(self.upstream.open(context), self.num_examples)


class TakeCursor(UnaryCursor):
    """The state is the number of yielded items."""

    def __init__(self, upstream: Cursor, count: int) -> None:
        super().__init__(upstream)
        self._count = count
        self._taken = 0

    @override
    def items(self) -> Iterator[Any]:
        for item in islice(self.upstream.items(), self._count - self._taken):
            self._taken += 1
            yield item

    @override
    def state(self) -> State:
        return [self._taken, self.upstream.state()]

    @override
    def restore(self, state: State) -> None:
        self._taken, inner = state
        self.upstream.restore(inner)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._taken = 0
        super().restart(reset_rng=reset_rng)


@dataclass(frozen=True, eq=False)
class Shard(UnaryStage):
    """Yield every ``num_shards``-th item, starting at index ``shard_idx``."""

    name: ClassVar[str] = "shard"
    shard_idx: int
    num_shards: int
    allow_uneven: bool

    @override
    def open(self, context: ReadContext) -> Cursor:
        part = ShardSlice(self.shard_idx, self.num_shards, self.allow_uneven)
        alone = self.upstream.open_part(context, part)
        if alone is not None:
            return alone
        kind = UnevenShardCursor if self.allow_uneven else EvenShardCursor
        return kind(self.upstream.open(context), self)


class EvenShardCursor(UnaryCursor):
    """Read groups of ``num_shards`` items and drop the last, incomplete one."""

    def __init__(self, upstream: Cursor, stage: Shard) -> None:
        super().__init__(upstream)
        self._stage = stage

    @override
    def items(self) -> Iterator[Any]:
        items, size = self.upstream.items(), self._stage.num_shards
        while len(group := list(islice(items, size))) == size:
            yield group[self._stage.shard_idx]


class UnevenShardCursor(UnaryCursor):
    """Read all items of the shard, including one of the last, incomplete group.

    The state tells whether an item was yielded. If so, the items of the other shards come first.
    """

    def __init__(self, upstream: Cursor, stage: Shard) -> None:
        super().__init__(upstream)
        self._stage = stage
        self._begun = False

    @override
    def items(self) -> Iterator[Any]:
        size = self._stage.num_shards
        first = size - 1 if self._begun else self._stage.shard_idx
        for item in islice(self.upstream.items(), first, None, size):
            self._begun = True
            yield item

    @override
    def state(self) -> State:
        return [int(self._begun), self.upstream.state()]

    @override
    def restore(self, state: State) -> None:
        begun, inner = state
        self._begun = bool(begun)
        self.upstream.restore(inner)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._begun = False
        super().restart(reset_rng=reset_rng)
