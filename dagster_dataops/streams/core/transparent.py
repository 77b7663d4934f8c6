"""Stages and cursors that change neither items nor states."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.random_access import RandomAccess, ShardSlice
from dagster_dataops.streams.core.stage import Cursor, ReadContext, State, UnaryStage


class TransparentCursor(Cursor):
    """Yield the items of another cursor, with its states; end a run of elementwise stages."""

    def __init__(self, source: Cursor) -> None:
        self.opened = [source]
        self.numbering = source.numbering

    @property
    @override
    def numbers_after(self) -> int:
        return self.opened[0].numbers_after

    @override
    def state(self) -> State:  # as the base does it, but it is called for every item
        return self.opened[0].state()

    @override
    def items(self) -> Iterator[Any]:
        return self.opened[0].items()


@dataclass(eq=False)
class TransparentStage(UnaryStage):
    """A stage that changes how a stream is read, but neither its items nor its states."""

    transparent: ClassVar[bool] = True
    keeps_step: ClassVar[bool] = True
    elastic: ClassVar[bool] = True

    @property
    @override
    def path(self) -> str:
        return self.upstream.path

    @override
    def open(self, context: ReadContext) -> Cursor:
        return TransparentCursor(self.upstream.open(context.of_input(self.upstream)))

    @override
    def items(self) -> Iterator[Any]:
        return self.source.items()

    @override
    def access(self, context: ReadContext) -> RandomAccess | None:
        return self.upstream.access(context)

    @override
    def open_part(self, context: ReadContext, part: ShardSlice) -> Cursor | None:
        return self.upstream.open_part(context, part)
