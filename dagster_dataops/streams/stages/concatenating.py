"""``concat``: read streams one after another; and the base of all combining cursors."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.stage import CombinedStage, Cursor, ReadContext, State


@dataclass(frozen=True, eq=False)
class ConcatStage(CombinedStage):
    """Yield the items of one stream after another."""

    name: ClassVar[str] = "concat"

    @property
    @override
    def finitude(self) -> Finitude:
        return max((one.finitude for one in self.sources), default=Finitude.FINITE)

    @override
    def open(self, context: ReadContext) -> Cursor:
        return ConcatCursor([one.open(context) for one in self.sources])


class CombinedCursor(Cursor):
    """A cursor with several inputs. The state is the list of their states."""

    def __init__(self, sources: list[Cursor]) -> None:
        self.sources = sources

    @override
    def state(self) -> State:
        return [one.state() for one in self.sources]

    @override
    def restore(self, state: State) -> None:
        for one, inner in zip(self.sources, state, strict=True):
            one.restore(inner)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        for one in self.sources:
            one.restart(reset_rng=reset_rng)


class ConcatCursor(CombinedCursor):
    """Read one stream after another. The state adds the index of the current stream."""

    def __init__(self, sources: list[Cursor]) -> None:
        super().__init__(sources)
        self._at = 0

    @override
    def items(self) -> Iterator[Any]:
        while self._at < len(self.sources):
            yield from self.sources[self._at].items()
            self._at += 1

    @override
    def state(self) -> State:
        return [self._at, super().state()]

    @override
    def restore(self, state: State) -> None:
        self._at, inner = state
        super().restore(inner)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._at = 0
        super().restart(reset_rng=reset_rng)
