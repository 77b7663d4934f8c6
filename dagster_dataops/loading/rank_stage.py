"""`RankStage`: the items of one rank, with the states of all."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from typing_extensions import override

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.streams.core.permutations import Permutation
from dagster_dataops.streams.core.random_access import RandomAccess, ShardSlice
from dagster_dataops.streams.core.seeds import seeded_random
from dagster_dataops.streams.core.stage import Cursor, ReadContext, Stage
from dagster_dataops.streams.core.stage_tree import distinct_stages, exchanged, with_inputs
from dagster_dataops.streams.sharding.marks import ShardingMark, TransparentStage, marks_below
from dagster_dataops.streams.stages.mapping import Map
from dagster_dataops.streams.stages.random_order import RandomCursor
from dagster_dataops.streams.stages.shuffling import Shuffle

Ending: TypeAlias = Literal["exact", "drop", "repeat"]

_GROUPS: Final = 256  # whose places are computed together


def ranked(last: Stage, rank: int, world_size: int, ending: Ending) -> Stage:
    """Return a stream that yields the items of one rank.

    They are chosen below each sharding mark; without a mark, below the ``map`` stages at the end.

    Raises:
        StreamDefinitionError: The stream has ranks already.
    """
    stages = distinct_stages(last)
    if any(isinstance(one, RankStage) for one in stages):
        reason = "the items are shared between ranks already; use one DistributedReadingService"
        raise StreamDefinitionError("DistributedReadingService", reason)
    if not marks_below(last):
        place = last
        while type(place) is Map or place.transparent:
            (place,) = place.inputs
        return exchanged(last, place, lambda one: RankStage(one, rank, world_size, ending))
    made: dict[Stage, Stage] = {}
    for stage in stages:
        found = with_inputs(stage, made)
        if isinstance(found, ShardingMark):
            found = replace(found, upstream=RankStage(found.upstream, rank, world_size, ending))
        made[stage] = found
    return made[last]


@dataclass(eq=False)
class RankStage(TransparentStage):
    """Pass over as many items as there are ranks, and yield that of one rank.

    So the position is always one between two such groups, the same on every rank.
    """

    name: ClassVar[str] = "ranked"
    rank: int
    world_size: int
    ending: Ending

    @override
    def open(self, context: ReadContext) -> Cursor:
        share = Share(self.rank, self.world_size, self.ending)
        if self.world_size == 1:
            return self.upstream.open(context)
        return self._random_cursor(context, share) or RankCursor(self.upstream.open(context), share)

    def _random_cursor(self, context: ReadContext, share: "Share") -> Cursor | None:
        """Return a cursor that reads this rank's items alone, if they are read by number.

        Not if failed items are passed over: which they are is known only by reading all.
        """
        shuffle = self.upstream
        if not isinstance(shuffle, Shuffle) or shuffle.shuffle_window:
            return None
        access = shuffle.upstream.access(context)
        if access is None or context.failures.on_error != "raise":
            return None
        return RandomRankCursor(access, shuffle.seed_in(context.seed), share)

    @override
    def access(self, context: ReadContext) -> RandomAccess | None:
        return self.upstream.access(context) if self.world_size == 1 else None

    @override
    def open_part(self, context: ReadContext, part: ShardSlice) -> Cursor | None:
        return self.upstream.open_part(context, part) if self.world_size == 1 else None


class Share(NamedTuple):
    """The items of one rank.

    Attributes:
        rank: The rank.
        world_size: The number of ranks.
        ending: What becomes of the last items if they are fewer than the ranks.
    """

    rank: int
    world_size: int
    ending: Ending

    def of_last(self, count: int) -> range:
        """Return the place of this rank's item among the last ``count``, fewer than the ranks."""
        if self.ending == "drop" or not count:
            return range(0)
        place = self.rank % count if self.ending == "repeat" else self.rank
        return range(place, min(place + 1, count))

    def numbers_after(self, count: int) -> int:
        """Return what `Cursor.numbers_after` is behind the last ``count`` items."""
        return count - self.world_size * len(self.of_last(count))


class RankCursor(Cursor):
    """Yield the items of one rank.

    Args:
        source: The cursor of all items.
        share: The items of the rank.
    """

    def __init__(self, source: Cursor, share: Share) -> None:
        self.opened = [source]
        self.numbering = (share.world_size, share.rank)
        self._share, self._numbers_after = share, 0

    @property
    @override
    def numbers_after(self) -> int:
        return self._numbers_after

    @override
    def items(self) -> Iterator[Any]:
        items, (rank, size, _) = self.opened[0].items(), self._share
        self._numbers_after = 0
        while True:
            group: list[Any] = []
            try:
                group.extend(islice(items, size))
            except Exception:
                if rank < len(group):
                    yield group[rank]  # it comes before the error
                raise
            if len(group) < size:
                self._numbers_after = self._share.numbers_after(len(group))
                for place in self._share.of_last(len(group)):
                    yield group[place]
                return
            yield group[rank]


class RandomRankCursor(RandomCursor):
    """Yield the items of one rank in random order, and read no others.

    Args:
        access: The items by number.
        seed: The seed of the order.
        share: The items of the rank.
    """

    def __init__(self, access: RandomAccess, seed: int, share: Share) -> None:
        super().__init__(access, seed, ShardSlice())
        self.numbering = (share.world_size, share.rank)
        self._share, self._numbers_after = share, 0

    @property
    @override
    def numbers_after(self) -> int:
        return self._numbers_after

    @override
    def items(self) -> Iterator[Any]:
        rank, size, _ = self._share
        self._numbers_after = 0
        with self._access.opened() as source:
            order = Permutation(source.size, seeded_random(self._seed, self._epoch, 0))
            while groups := min((source.size - self._passed) // size, _GROUPS):
                first = self._passed + rank
                for number in order.values_at(range(first, first + groups * size, size)):
                    self._passed += size
                    yield source.item(number)
            first, left = self._passed, source.size - self._passed
            self._passed += left
            self._numbers_after = self._share.numbers_after(left)
            places = self._share.of_last(left)
            for number in order.values_at(range(first + places.start, first + places.stop)):
                yield source.item(number)
