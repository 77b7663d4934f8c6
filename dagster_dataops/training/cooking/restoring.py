"""``restore_record``: make one record, pack or batch of a crude dataset again, alone."""

import asyncio
import inspect
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol

from dagster_dataops.errors import UnknownSampleError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.records import RESTORE_KEY
from dagster_dataops.streams.core.item_failures import FailureHandler
from dagster_dataops.streams.core.sequences import SequenceSource
from dagster_dataops.streams.core.stage import ReadContext, Stage, UnaryStage
from dagster_dataops.streams.core.transparent import TransparentStage
from dagster_dataops.streams.parallel.parallel_map import ParallelMap
from dagster_dataops.streams.stages.concatenating import ConcatStage
from dagster_dataops.streams.stages.flattening import YieldFrom, inner_stage
from dagster_dataops.streams.stages.grouping.buckets import Bucket, BucketByLength, DynamicBucket
from dagster_dataops.streams.stages.grouping.window_packing import PACK, Pack, packs_of
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
from dagster_dataops.training.cooking.cookers import listed_cookers
from dagster_dataops.training.cooking.crude_sources import CrudeSource
from dagster_dataops.training.cooking.group_batches import GroupBatches
from dagster_dataops.training.cooking.joined_samples import entry_of

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
    """Return what a stage makes of items."""
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


_KEY_PARTS = (3, 4)  # dataset, shard and key; and the entry of a metadataset, if several fit


class Restorable(Protocol):
    """A stream, complete or not."""

    @property
    def stage(self) -> Stage:
        """The last stage."""
        ...


def restore_record(dataset: Restorable, restore_key: Sequence[Any], cookers: Any = None) -> Any:
    """Return one record of a stream again, by its ``__restore_key__``.

    Only the samples of that key are read. They are cooked, mapped and filtered as in the stream. Of
    a pack its samples are made again, and packed; of a batch its items, and the functions behind
    ``bucket()`` are applied to their list. For the key of one record, such functions get the list
    of this record alone; without such functions, the record itself is returned. A dataset of
    `get_train_dataset` gives the record as ``batch()`` of its task encoder gets it.

    Args:
        dataset: The stream: ``crude(...)`` for the sample, ``crude(...).cook(...)`` for the record.
        restore_key: The key ``[dataset, shard, key]``, with the entry of the metadataset as a
            fourth part where several name the dataset, and with the number of the item at the end
            where a generator of a task encoder made several of one sample; of a pack
            ``["pack", key, ...]``; of a batch the list of the keys of its items, ``[key, ...]``.
        cookers: The cookers of a record that an operator ``cook(...)`` made; ``None`` to use those
            of the stream.

    Raises:
        UnknownSampleError: The dataset has no such sample, or the key fits several records.

    Example:
        >>> batch = next(iter(crude("images").cook(cook_image).bucket(8)))
        >>> again = restore_record(stream, [record["__restore_key__"] for record in batch])
    """
    before_batches = None if _is_batch(restore_key) else getattr(dataset, "item_stage", None)
    stage = before_batches or dataset.stage
    if cookers is not None:
        stage = Cook(stage, listed_cookers(cookers))
    return restored(stage, restore_key)


def restored(stage: Stage, restore_key: Sequence[Any]) -> Any:
    """Return what a stage makes of the samples of a key; see `restore_record`."""
    key: object = restore_key
    if isinstance(key, (list, tuple)) and key and key[0] == PACK:
        return _packed(stage, restore_key)
    if _is_batch(key):
        return _batch(stage, restore_key)
    return _record(stage, *_checked(restore_key))


def _record(stage: Stage, place: str, shard: str, key: str, *more: str | int) -> Any:
    entry = tuple(part for part in more if isinstance(part, str))
    chains = [chain for chain in _chains(stage) if isinstance(chain[0], CrudeSource)]
    known = ", ".join(sorted({chain[0].place for chain in chains})) or "no crude dataset"
    failure = UnknownSampleError(place, key, f"the stream reads other data: {known}")
    samples: list[_Made] = []
    for chain in (chain for chain in chains if chain[0].place == place):
        try:
            sample = _made_by(chain, [place, shard, key, *more], entry)
        except UnknownSampleError as error:  # another source of the same dataset may have it
            failure = error
            continue
        if all(not sample.is_like(other) for other in samples):
            samples.append(sample)
    if not samples:
        raise failure
    if len(samples) > 1:
        reason = (
            f"the key fits {counted(len(samples), 'datasets')} of the stream, which make different "
            "records of it; give the stream of one of them, such as crude(...).cook(...)"
        )
        raise UnknownSampleError(place, key, reason)
    return samples[0].record


def _is_batch(restore_key: object) -> bool:
    """Return whether a key is a list of keys, and maybe a number behind."""
    keys = restore_key if isinstance(restore_key, (list, tuple)) else ()
    keys = keys[:-1] if len(keys) > 1 and type(keys[-1]) is int else keys
    return bool(keys) and all(isinstance(key, (list, tuple)) for key in keys)


class _Made(NamedTuple):
    """A record, and what it was made of: the sample, the auxiliary stores and the stages."""

    record: Any
    origin: tuple[Any, ...]

    def is_like(self, other: "_Made") -> bool:
        """Return whether the other record is surely equal."""
        for name in ("origin", "record"):
            try:
                if getattr(self, name) == getattr(other, name):
                    return True
            except Exception:  # noqa: BLE001, S112 - values such as arrays cannot be compared
                continue
        return False


def _made_by(chain: list[Any], restore_key: list[Any], entry: tuple[str, ...]) -> _Made:
    """Return what a source and the stages behind it make of one sample."""
    source, (place, shard, key, *_) = chain[0], restore_key
    named = [stage.entry for stage in chain if isinstance(stage, Leaf) and stage.entry is not None]
    if entry and tuple(named or [entry_of(source)]) != entry:
        reason = f"the stream has no entry {entry[0]} of this dataset"
        raise UnknownSampleError(place, key, reason)
    sample = source.sample_of_key(shard, key)
    origin = dict(sample), source.labels, [stage for stage in chain if is_changing(stage)]
    held = _numbered(_followed(Held([sample]), chain, place, key), restore_key)
    if not held.items:
        raise UnknownSampleError(place, key, "the stream leaves the sample out")
    if len(held.items) > 1:
        reason = f"the stream makes {counted(len(held.items), 'records')} of it, with the same key"
        raise UnknownSampleError(place, key, reason)
    return _Made(held.only, origin)


def _numbered(held: Held, restore_key: list[Any]) -> Held:
    """Return the item of a key that ends with its number among the items of its sample."""
    if not isinstance(restore_key[-1], int):
        return held
    items = [item[0] for item in held.items] if held.is_list else held.items
    keys = [item.get(RESTORE_KEY) if isinstance(item, dict) else None for item in items]
    chosen = [item for item, key in zip(held.items, keys, strict=True) if key == restore_key]
    return replace(held, items=chosen)


def _followed(held: Held, stages: Sequence[Stage], place: str, key: object) -> Held:
    for stage in stages:
        try:
            held = applied(stage, held)
        except NotImplementedError as error:
            raise UnknownSampleError(place, key, str(error)) from None
    return held


def _packed(stage: Stage, restore_key: Sequence[Any]) -> Any:
    """Return a pack again; its key ends with a number if its group made several."""
    pack, behind = _last(stage, (Pack,), restore_key, "the stream packs nothing")
    _, *keys = restore_key
    number = keys.pop() if keys and isinstance(keys[-1], int) else 0
    group = [restored(pack.upstream, key) for key in keys]
    packs = packs_of(pack.pack, group)
    if number >= len(packs):
        raise UnknownSampleError("restore_record", restore_key, "its samples make fewer packs")
    return _behind(Held([packs[number]]), behind, restore_key, "pack")


def _batch(stage: Stage, restore_key: Sequence[Any]) -> Any:
    """Return a batch again, by the list of the keys of its items."""
    bucket, behind = _last(stage, BUCKETS, restore_key, "the stream makes no batches")
    keys = [key for key in restore_key if type(key) is not int]
    items = [restored(bucket.upstream, key) for key in keys]
    return _behind(Held([items]), behind, restore_key, "batch")


def _last(
    stage: Any, kinds: tuple[type[UnaryStage], ...], restore_key: object, without: str
) -> tuple[Any, list[Stage]]:
    """Return the last stage of some kinds, and the stages behind it."""
    behind: list[Stage] = []
    while not isinstance(stage, kinds):
        if not isinstance(stage, UnaryStage):
            reason = f"{without} behind {stage.described}"
            raise UnknownSampleError("restore_record", restore_key, reason)
        behind.insert(0, stage)
        stage = stage.upstream
    return stage, behind


def _behind(held: Held, behind: list[Stage], restore_key: Sequence[Any], what: str) -> Any:
    held = _followed(held, behind, "restore_record", restore_key)
    held = _numbered(held, list(restore_key)) if what == "batch" else held
    if not held.items:
        reason = f"the stream leaves the {what} out"
        raise UnknownSampleError("restore_record", restore_key, reason)
    if len(held.items) > 1:
        reason = f"the stream makes {counted(len(held.items), 'items')} of the {what}"
        raise UnknownSampleError("restore_record", restore_key, f"{reason}, with the same key")
    return held.only


def _checked(restore_key: Sequence[Any]) -> list[Any]:
    parts = list(restore_key) if isinstance(restore_key, (list, tuple)) else []
    while parts and type(parts[-1]) is int:
        parts.pop()
    if len(parts) not in _KEY_PARTS or not all(isinstance(part, str) for part in parts):
        reason = "a restore key is [dataset, shard, key], as a record has it in __restore_key__"
        raise UnknownSampleError("restore_record", restore_key, reason)
    return list(restore_key)


def _chains(stage: Stage) -> "list[list[Any]]":
    """Return the stages from each source to the last stage."""
    if not stage.inputs:
        return [[stage]]
    return [[*chain, stage] for source in stage.inputs for chain in _chains(source)]
