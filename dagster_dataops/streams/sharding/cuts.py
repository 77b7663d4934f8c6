"""Cuts: choose which stages of a stream run in worker processes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from dagster_dataops.streams.core.sequences import ConstantSource, CountSource, SequenceSource
from dagster_dataops.streams.core.stage import CombinedStage, Stage, UnaryStage
from dagster_dataops.streams.files.file_stages import FileStage
from dagster_dataops.streams.parallel.parallel_map import UnorderedMap
from dagster_dataops.streams.sharding.feeds import Feed
from dagster_dataops.streams.sharding.marks import ShardingMark, marks_below
from dagster_dataops.streams.stages.concatenating import ConcatStage
from dagster_dataops.streams.stages.grouping.buckets import Bucket
from dagster_dataops.streams.stages.mapping import Filter, Map
from dagster_dataops.streams.stages.repeating import Repeat
from dagster_dataops.streams.stages.round_robin import RoundRobinStage
from dagster_dataops.streams.stages.sampling import SampleStage
from dagster_dataops.streams.stages.shuffling import Shuffle
from dagster_dataops.streams.stages.taking import ContiguousShard, Shard, Skip, Take
from dagster_dataops.streams.stages.zipping import ZipStage

# Stages that every worker can run itself: at little cost, and with equal items.
_CHEAP: Final = (
    *(SequenceSource, CountSource, ConstantSource),
    *(Skip, Take, Shard, ContiguousShard, Shuffle, Repeat, Bucket),
    *(ConcatStage, RoundRobinStage, SampleStage, ZipStage),
)


@dataclass(frozen=True)
class Cut:
    """The place at which workers take over, and the stages that they run.

    Attributes:
        run: The elementwise stages that run in workers, from the last one down.
        before: The last stage before them.
        mark: The mark at the cut; ``None`` if the cut was chosen.
    """

    run: tuple[Stage, ...]
    before: Stage
    mark: ShardingMark | None = None

    @property
    def whole(self) -> Stage:
        """The last stage of the run, upon the stages before it."""
        return self.run[0] if self.run else self.mark or self.before

    def is_dispatched(self) -> bool:
        """Return whether one process reads the stages before the run. Files are listed now."""
        stages = list(self.before.ordered())
        if self.mark is not None:
            return self.mark.dispatched or any(isinstance(stage, UnorderedMap) for stage in stages)
        return not all(map(_is_cheap, stages))

    def upon(self, feed: Feed) -> Stage:
        """Return the run upon a feed in place of the stages before it."""
        stage: Stage = feed
        for part in reversed(self.run):
            stage = replace(part, upstream=stage)  # type: ignore[call-arg]
        return stage


def _is_cheap(stage: Stage) -> bool:
    if isinstance(stage, FileStage):
        return stage.files.plain_files() is not None
    return isinstance(stage, _CHEAP) or stage.transparent


Merged = Callable[[Cut, int], Stage]


def with_workers(stage: Stage, number: int, merged: Merged) -> Stage:
    """Return a stream with its elementwise stages replaced by stages that run them in workers.

    The stages behind a mark are chosen; without a mark, the last elementwise stages. If these are
    in the inputs of a combination, each input gets workers. Inputs that are read in turn share the
    number of workers.

    Args:
        stage: The last stage.
        number: The number of workers.
        merged: Given a cut and a number of workers, returns the stage for the run of the cut.
    """
    path = _unary_path(stage)
    cut = _marked_cut(path) if marks_below(stage) else _chosen_cut(path)
    if cut is not None:
        return _upon(path[: path.index(cut.whole)], merged(cut, number))
    bottom = path[-1]
    if not isinstance(bottom, CombinedStage):
        return stage
    shared = number if isinstance(bottom, ConcatStage) else number // len(bottom.sources)
    inputs = [with_workers(source, max(1, shared), merged) for source in bottom.sources]
    return _upon(path[:-1], replace(bottom, sources=tuple(inputs)))


def with_shard(stage: Stage, shard_idx: int, num_shards: int) -> Stage:
    """Return one of several streams that, one after another, have the items of a stream.

    The shards are contiguous parts of what ``map``, ``filter`` and marks at the end of the stream
    read, so these process only the items of their shard.

    Args:
        stage: The last stage.
        shard_idx: The index of the shard, from 0.
        num_shards: The number of shards.
    """
    path = _unary_path(stage)
    at = 0
    while isinstance(path[at], (Map, Filter)) or path[at].transparent:
        at += 1
    return _upon(path[:at], ContiguousShard(path[at], shard_idx, num_shards, allow_uneven=True))


def _unary_path(stage: Stage) -> list[Stage]:
    path = [stage]
    while isinstance(stage, UnaryStage):
        stage = stage.upstream
        path.append(stage)
    return path


def _marked_cut(path: list[Stage]) -> Cut | None:
    for at, mark in enumerate(path):
        if isinstance(mark, ShardingMark):
            first = at
            while first and path[first - 1].elementwise:
                first -= 1
            return Cut(tuple(path[first:at]), mark.upstream, mark)
    return None


def _chosen_cut(path: list[Stage]) -> Cut | None:
    """Return the cut below the last run of elementwise stages.

    Without any, workers only read, where that is cheap.
    """
    first = next((at for at, step in enumerate(path) if step.elementwise), None)
    if first is None:
        source = path[-1]
        alone = not source.inputs and _is_cheap(source)
        return Cut((), source) if alone else None
    end = first
    while path[end].elementwise:
        end += 1
    return Cut(tuple(path[first:end]), path[end])


def _upon(above: list[Stage], stage: Stage) -> Stage:
    for part in reversed(above):
        stage = replace(part, upstream=stage)  # type: ignore[call-arg]
    return stage
