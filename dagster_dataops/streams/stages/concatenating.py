"""``concat``: read streams one after another."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.stage import CombinedStage


@dataclass(eq=False)
class ConcatStage(CombinedStage):
    """Yield the items of one stream after another. The index of the current one is saved."""

    name: ClassVar[str] = "concat"
    takes_unread: ClassVar[bool] = True
    saved: ClassVar[tuple[str, ...]] = ("_at",)

    @override
    def reset(self) -> None:
        self._at = 0

    @override
    def items(self) -> Iterator[Any]:
        while self._at < len(self.opened):
            yield from self.opened[self._at].items()
            self._at += 1
