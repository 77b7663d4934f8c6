"""``sharding_filter`` and ``sharding_round_robin_dispatch``: where worker processes take over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.streams.core.random_access import RandomAccess, ShardSlice
from dagster_dataops.streams.core.stage import Cursor, ReadContext, Stage, UnaryStage
from dagster_dataops.streams.core.transparent_cursor import TransparentCursor


@dataclass(eq=False)
class TransparentStage(UnaryStage):
    """A stage that changes how a stream is read, but neither its items nor its states."""

    transparent: ClassVar[bool] = True

    @property
    @override
    def path(self) -> str:
        return self.upstream.path

    @override
    def open(self, context: ReadContext) -> Cursor:
        return TransparentCursor(self.upstream.open(context))

    @override
    def items(self) -> Iterator[Any]:
        return self.source.items()

    @override
    def access(self, context: ReadContext) -> RandomAccess | None:
        return self.upstream.access(context)

    @override
    def open_part(self, context: ReadContext, part: ShardSlice) -> Cursor | None:
        return self.upstream.open_part(context, part)


@dataclass(eq=False)
class ShardingMark(TransparentStage):
    """The place from which each item belongs to one worker.

    Attributes:
        dispatched: Whether one process reads the stages before the mark. Otherwise every worker
            reads them, and passes over the items of the others.
    """

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
    return [one for one in stage.ordered() if isinstance(one, ShardingMark)]


def check_mark(name: str, upstream: Stage) -> None:
    """Refuse a mark behind another mark.

    Raises:
        StreamDefinitionError: ``upstream`` has a mark.
    """
    for mark in marks_below(upstream):
        reason = f"the stream would be sharded twice: it already has a {mark.name} before; keep one"
        raise StreamDefinitionError(name, reason)


def check_inputs(name: str, inputs: Sequence[Stage]) -> None:
    """Refuse a combination in which some inputs have a mark and others have none.

    Raises:
        StreamDefinitionError: It is one.
    """
    marked = [bool(marks_below(one)) for one in inputs]
    if any(marked) and not all(marked):
        given, missing = marked.index(True), marked.index(False)
        reason = (
            f"the stream at index {given} has a sharding mark, but that at index {missing} has "
            f"none; mark every stream, or mark the result of {name} instead"
        )
        raise StreamDefinitionError(name, reason)
