"""`RankStage`: the items of one rank, with the states of all."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, Literal, TypeAlias

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.random_access import RandomAccess, ShardSlice, read_item
from dagster_dataops.streams.core.stage import Cursor, ReadContext, Stage
from dagster_dataops.streams.core.stage_tree import distinct_stages, exchanged, with_inputs
from dagster_dataops.streams.core.transparent import TransparentStage
from dagster_dataops.streams.parallel.parallel_map import UnorderedMap
from dagster_dataops.streams.sharding.marks import ShardingMark, marks_below
from dagster_dataops.streams.stages.mapping import Map
from dagster_dataops.streams.stages.random_order import OfLast, RandomCursor

Ending: TypeAlias = Literal["exact", "drop", "repeat"]


def ranked(last: Stage, rank: int, world_size: int, ending: Ending) -> Stage:
    """Return a stream that yields the items of one rank.

    They are chosen below each sharding mark; without a mark, below the ``map`` stages at the end.
    """
    stages = distinct_stages(last)
    if any(isinstance(stage, RankStage) for stage in stages):
        reason = "the items are shared between ranks already; use one DistributedReadingService"
        raise StreamDefinitionError("DistributedReadingService", reason)
    if not marks_below(last):
        place = last
        while type(place) is Map or place.transparent:
            (place,) = place.inputs
        return exchanged(last, place, lambda below: _stage(below, rank, world_size, ending))
    adapted: dict[Stage, Stage] = {}
    for stage in stages:
        member = with_inputs(stage, adapted)
        if isinstance(member, ShardingMark):
            member = replace(member, upstream=_stage(member.upstream, rank, world_size, ending))
        adapted[stage] = member
    return adapted[last]


def _stage(upstream: Stage, rank: int, world_size: int, ending: Ending) -> "RankStage":
    if world_size > 1 and any(isinstance(stage, UnorderedMap) for stage in upstream.ordered()):
        reason = (
            "it yields items in another order on each rank, so that items would be lost and "
            "doubled: put the sharding mark before it, or set deterministic=True"
        )
        raise StreamDefinitionError("map(deterministic=False)", reason)
    return RankStage(upstream, rank, world_size, ending)


@dataclass(eq=False)
class RankStage(TransparentStage):
    """Pass over as many items as there are ranks, and yield that of one rank.

    So the position is always one between two such groups, the same on every rank.
    """

    name: ClassVar[str] = "ranked"
    takes_unread: ClassVar[bool] = True
    rank: int
    world_size: int
    ending: Ending

    @property
    @override
    def share(self) -> tuple[int, int]:
        return self.rank, self.world_size

    @override
    def open(self, context: ReadContext) -> Cursor:
        if self.world_size == 1:
            return self.upstream.open(context.of_input(self.upstream))
        # Which items failed and are passed over is known only by reading all.
        all_count = context.failures.on_error == "raise"
        source = self.upstream.open(context.of_input(self.upstream, unread=True))
        return RankCursor(source, self, by_number=all_count, unread=context.unread)

    def of_last(self, count: int) -> range:
        """Return the place of this rank's item among the last ``count``, fewer than the ranks."""
        if self.ending == "drop" or not count:
            return range(0)
        place = self.rank % count if self.ending == "repeat" else self.rank
        return range(place, min(place + 1, count))

    @override
    def access(self, context: ReadContext) -> RandomAccess | None:
        return self.upstream.access(context) if self.world_size == 1 else None

    @override
    def open_part(self, context: ReadContext, part: ShardSlice) -> Cursor | None:
        return self.upstream.open_part(context, part) if self.world_size == 1 else None


class RankCursor(Cursor):
    """Yield the items of one rank.

    Args:
        source: The cursor of all items.
        stage: The rank, and the treatment of the last items.
        by_number: Whether to read this rank's items alone, where items are read by number.
        unread: Whether to yield unread items.
    """

    def __init__(
        self, source: Cursor, stage: RankStage, *, by_number: bool, unread: bool = False
    ) -> None:
        self.opened = [source]
        self.numbering = (stage.world_size, stage.rank)
        self._stage, self._by_number, self._numbers_after = stage, by_number, 0
        self._unread = unread

    @property
    @override
    def numbers_after(self) -> int:
        return self._numbers_after

    @override
    def items(self) -> Iterator[Any]:
        source, (size, rank) = self.opened[0], self.numbering
        self._numbers_after = 0
        if self._by_number and isinstance(source, RandomCursor):
            chosen = source.one_of_each(rank, size, self._of_last)
        else:
            chosen = _one_of_each(source.items(), rank, size, self._of_last)
        return chosen if self._unread else map(read_item, chosen)

    def _of_last(self, count: int) -> range:
        chosen = self._stage.of_last(count)
        self._numbers_after = count - self._stage.world_size * len(chosen)
        return chosen


def _one_of_each(items: Iterator[Any], place: int, size: int, of_last: OfLast) -> Iterator[Any]:
    """Yield one item of each ``size`` in turn; see `RandomCursor.one_of_each`."""
    while True:
        group: list[Any] = []
        try:
            group.extend(islice(items, size))
        except Exception:
            if place < len(group):
                yield group[place]  # it comes before the error
            raise
        if len(group) < size:
            yield from [group[place] for place in of_last(len(group))]
            return
        yield group[place]
