"""`applied`: what a stage makes of one record alone, to make it again."""

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from dagster_dataops.streams.core.item_failures import FailureHandler
from dagster_dataops.streams.core.sequences import SequenceSource
from dagster_dataops.streams.core.stage import ReadContext, Stage
from dagster_dataops.streams.core.transparent import TransparentStage
from dagster_dataops.streams.parallel.parallel_map import ParallelMap
from dagster_dataops.streams.stages.concatenating import ConcatStage
from dagster_dataops.streams.stages.flattening import YieldFrom, inner_stage
from dagster_dataops.streams.stages.grouping.buckets import Bucket, BucketByLength, DynamicBucket
from dagster_dataops.streams.stages.grouping.window_packing import Pack
from dagster_dataops.streams.stages.item_counts import CountedItems
from dagster_dataops.streams.stages.mapping import Filter, IndexedMap, Map
from dagster_dataops.streams.stages.prefetching import Prefetch
from dagster_dataops.streams.stages.repeating import Repeat
from dagster_dataops.streams.stages.round_robin import RoundRobinStage
from dagster_dataops.streams.stages.sampling import SampleStage
from dagster_dataops.streams.stages.shuffling import Shuffle
from dagster_dataops.streams.stages.taking import ContiguousShard, Shard, Skip, Take
from dagster_dataops.streams.stages.zipping import ZipStage
from dagster_dataops.training.cooking.blending import (
    Blend,
    BlendEpochized,
    Leaf,
    RowRange,
    ShuffledRuns,
)
from dagster_dataops.training.cooking.cook_stage import Cook
from dagster_dataops.training.cooking.crude_sources import CrudeSource
from dagster_dataops.training.cooking.group_batches import GroupBatches

_CHOOSING: Final = (  # stages that choose and order items, and change none
    *(CrudeSource, TransparentStage, ConcatStage, Prefetch, Repeat, RoundRobinStage, SampleStage),
    *(Shuffle, ContiguousShard, Shard, Skip, Take, Blend, BlendEpochized, RowRange),
    *(ShuffledRuns, CountedItems),
)
BUCKETS: Final = (Bucket, BucketByLength, DynamicBucket, GroupBatches)
"""The stages whose items are batches."""

_ALONE: Final = ReadContext(0, FailureHandler())
_WITH_OTHERS: Final = (ZipStage, Pack)  # their items hold the record among others
_MAPS: Final = (Map, ParallelMap, IndexedMap)


@dataclass(frozen=True)
class Held:
    """The items that stages made of one sample.

    Attributes:
        items: The items.
        is_list: Whether each is the list of one record that a bucket made, not changed since.
        within: The stage whose items hold the record among others; ``None`` for none.
    """

    items: list[Any]
    is_list: bool = False
    within: Stage | None = None

    @property
    def only(self) -> Any:
        """The first item; the record of a list that was not changed."""
        return self.items[0][0] if self.is_list else self.items[0]


def is_changing(stage: Stage) -> bool:
    """Return whether a stage can make other items of its items, or leave some out."""
    return not isinstance(stage, (*_CHOOSING, Leaf))


def applied(stage: Stage, held: Held) -> Held:
    """Return what a stage makes of items.

    Raises:
        NotImplementedError: It depends on more than these items.
    """
    if isinstance(stage, _CHOOSING):
        return held
    if isinstance(stage, _WITH_OTHERS) and held.within is None:
        return Held(held.items, held.is_list, stage)
    if held.within is not None:
        msg = (
            f"{stage.described} takes items of {held.within.described}, which are made of several "
            f"samples; give the stream before {held.within.described}"
        )
        raise NotImplementedError(msg)
    if isinstance(stage, Leaf):
        return Held([stage.marked(item) for item in held.items])
    if isinstance(stage, BUCKETS):
        creates = isinstance(stage, DynamicBucket) and stage.bucket_creation_fn is not None
        items = [[item] for item in held.items]
        return Held(items, is_list=not held.is_list, within=stage if creates else None)
    return Held(_changed(stage, held.items), held.is_list and isinstance(stage, Filter))


def _changed(stage: Stage, items: list[Any]) -> list[Any]:
    if isinstance(stage, Filter):
        wanted = stage.function()
        return [item for item in items if wanted(item)]
    if isinstance(stage, Cook):
        cook = stage.function()
        results = [cook(item) for item in items]
        return [item for part in results for item in (part if isinstance(part, list) else [part])]
    if isinstance(stage, _MAPS):
        selector = None if isinstance(stage, IndexedMap) else stage.selector
        mapping = Map(stage.upstream, stage.functions, selector).function()
        return [_awaited(mapping(item)) for item in items]
    if isinstance(stage, YieldFrom):
        streams = [inner_stage(stage.fn(item)) for item in items]
        if all(isinstance(stream, SequenceSource) for stream in streams):
            return [part for stream in streams for part in stream.open(_ALONE).items()]
    msg = (
        f"the items of {stage.described} depend on more than this record; give the stream before "
        f"{stage.described}"
    )
    raise NotImplementedError(msg)


def _awaited(result: Any) -> Any:
    """Return the result of a coroutine; an event loop may be running in this thread."""
    if not inspect.iscoroutine(result):
        return result
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, result).result()
