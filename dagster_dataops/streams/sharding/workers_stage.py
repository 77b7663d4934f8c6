"""``workers``: read a stream with several processes."""

from dataclasses import dataclass
from multiprocessing.process import current_process
from typing import ClassVar

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.stage import CombinedStage, Cursor, ReadContext, Stage
from dagster_dataops.streams.core.stage_tree import distinct_stages
from dagster_dataops.streams.core.transparent import TransparentStage
from dagster_dataops.streams.sharding.cuts import Cut, with_workers
from dagster_dataops.streams.sharding.marks import (
    ShardingMark,
    check_inputs,
    marks_below,
)


@dataclass(eq=False)
class WorkersStage(TransparentStage):
    """Read a stream with several worker processes.

    Attributes:
        num_workers: The number of processes; 0 reads in the process itself.
        prefetch: The number of tasks for each worker that may be unfinished or not yet read.
        main_prefetch: The number of further finished tasks that may be not yet read.
    """

    name: ClassVar[str] = "workers"
    left_out: ClassVar[frozenset[str]] = frozenset({"num_workers", "prefetch", "main_prefetch"})
    num_workers: int
    prefetch: int
    main_prefetch: int

    @override
    def open(self, context: ReadContext) -> Cursor:
        if not self.num_workers or current_process().daemon:
            return super().open(context)  # a process of a pool cannot start others
        # Connections and pickling take a while to import.
        from dagster_dataops.streams.sharding.merge_cursor import MergeStage
        from dagster_dataops.streams.sharding.shard_pool import Limits

        def merged(cut: Cut, number: int) -> Stage:
            return MergeStage(cut.whole, cut, Limits(number, self.prefetch, self.main_prefetch))

        return with_workers(self.upstream, self.num_workers, merged).open(context)


def check_mark(name: str, upstream: Stage) -> None:
    """Refuse a mark behind another mark, or behind workers."""
    for mark in marks_below(upstream):
        reason = f"the stream would be sharded twice: it already has a {mark.name} before; keep one"
        raise StreamDefinitionError(name, reason)
    check_workers(name, upstream)


def check_workers(name: str, upstream: Stage) -> None:
    """Refuse workers or a mark behind workers."""
    if any(isinstance(stage, WorkersStage) for stage in upstream.ordered()):
        reason = "the stream already has workers; give their number once, behind all marks"
        raise StreamDefinitionError(name, reason)


def check_sharding(last: Stage) -> None:
    """Refuse a stream that was put together so that its marks or workers do not fit.

    Raises:
        StreamDefinitionError: A mark or workers are given twice, or on some inputs only.
    """
    for stage in distinct_stages(last):
        if isinstance(stage, ShardingMark):
            check_mark(stage.name, stage.upstream)
        if isinstance(stage, WorkersStage):
            check_workers(stage.name, stage.upstream)
        if isinstance(stage, CombinedStage):
            check_inputs(stage.name, stage.inputs)
