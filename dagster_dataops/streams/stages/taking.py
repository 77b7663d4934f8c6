"""``skip``, ``take`` and ``shard``: select items by position."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.random_access import ShardSlice
from dagster_dataops.streams.core.stage import Cursor, ReadContext, UnaryStage


@dataclass(eq=False)
class Skip(UnaryStage):
    """Skip the first ``num_examples`` items. Whether they were skipped is saved."""

    name: ClassVar[str] = "skip"
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
    saved: ClassVar[tuple[str, ...]] = ("_begun",)
    shard_idx: int
    num_shards: int
    allow_uneven: bool

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
