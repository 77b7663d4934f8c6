"""``sharding_filter`` and ``sharding_round_robin_dispatch``: where worker processes take over."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.core.transparent import TransparentStage


@dataclass(eq=False)
class ShardingMark(TransparentStage):
    """The place from which each item belongs to one worker.

    Attributes:
        dispatched: Whether one process reads the stages before the mark. Otherwise every worker
            reads them, and passes over the items of the others.
    """

    takes_unread: ClassVar[bool] = True
    dispatched: ClassVar[bool] = False


@dataclass(eq=False)
class ShardingFilter(ShardingMark):
    """Every worker reads the stages before the mark."""

    name: ClassVar[str] = "sharding_filter"


@dataclass(eq=False)
class ShardingDispatch(ShardingMark):
    """The reading process reads the stages before the mark and sends their items to the workers."""

    name: ClassVar[str] = "sharding_round_robin_dispatch"
    dispatched: ClassVar[bool] = True


def marks_below(stage: Stage) -> list[ShardingMark]:
    """Return the marks among a stage and all its inputs."""
    return [mark for mark in stage.ordered() if isinstance(mark, ShardingMark)]


def check_inputs(name: str, inputs: Sequence[Stage]) -> None:
    """Refuse a combination in which some inputs have a mark and others have none."""
    marked = [bool(marks_below(stage)) for stage in inputs]
    if any(marked) and not all(marked):
        marked_at, missing = marked.index(True), marked.index(False)
        reason = (
            f"the stream at index {marked_at} has a sharding mark, but that at index {missing} has "
            f"none; mark every stream, or mark the result of {name} instead"
        )
        raise StreamDefinitionError(name, reason)
