"""`CountedItems`: the stages below know how many items were made before the present one."""

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.stage import Cursor, ReadContext, UnaryStage
from dagster_dataops.streams.core.transparent import TransparentCursor, TransparentStage

_COUNT: Final[ContextVar[int]] = ContextVar("dataops_item_count")
_END: Final = object()


def count_of_items() -> int | None:
    """Return how many items the `CountedItems` above has yielded; ``None`` if none is above."""
    return _COUNT.get(None)


@dataclass(eq=False)
class CountedItems(UnaryStage):
    """Yield the items of a stream; while the next one is made, `count_of_items` is their number.

    The stages below must run in the same process, see `InReadingProcess`. Items are counted across
    epochs, each rank its own. The count is saved.
    """

    name: ClassVar[str] = "counted"
    saved: ClassVar[tuple[str, ...]] = ("count",)
    keeps_step: ClassVar[bool] = True
    elastic: ClassVar[bool] = True

    @override
    def reset(self) -> None:
        self.count = 0

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        count = 0 if reset_rng else self.count
        super().restart(reset_rng=reset_rng)
        self.count = count

    @override
    def items(self) -> Iterator[Any]:
        source = self.source.items()
        while True:
            token = _COUNT.set(self.count)
            try:
                item = next(source, _END)
            finally:
                _COUNT.reset(token)
            if item is _END:
                return
            self.count += 1
            yield item


@dataclass(eq=False)
class InReadingProcess(TransparentStage):
    """Keep the stages above it out of worker processes; those below may run in them.

    Items are numbered anew: the first one of rank r of W is item r, the next one r + W.
    """

    name: ClassVar[str] = "in_reading_process"

    @override
    def open(self, context: ReadContext) -> Cursor:
        cursor = TransparentCursor(self.upstream.open(context))
        rank, number = next(
            (stage.share for stage in self.upstream.ordered() if stage.share[1] > 1), (0, 1)
        )
        cursor.numbering = (number, rank)
        return cursor
