"""``repeat``: read the stream for several epochs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from typing_extensions import override

from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.stage import Cursor, ReadContext, State, UnaryCursor, UnaryStage

_END: Final = object()


@dataclass(frozen=True, eq=False)
class Repeat(UnaryStage):
    """Yield ``num_repeats`` epochs, or epochs without end if it is ``None``.

    A stream without items ends at once.
    """

    name: ClassVar[str] = "repeat"
    num_repeats: int | None
    reset_rng: bool

    @property
    @override
    def finitude(self) -> Finitude:
        return Finitude.INFINITE if self.num_repeats is None else self.upstream.finitude

    @override
    def endless(self) -> Any:
        return self if self.num_repeats is None else super().endless()

    @override
    def open(self, context: ReadContext) -> Cursor:
        return RepeatCursor(self.upstream.open(context), self)


class EpochCursor(UnaryCursor):
    """A cursor over epochs. The state is the epoch, and whether it has yielded an item."""

    def __init__(self, upstream: Cursor) -> None:
        super().__init__(upstream)
        self._epoch = 0
        self._has_yielded = False

    @override
    def state(self) -> State:
        return [self._epoch, int(self._has_yielded), self.upstream.state()]

    @override
    def restore(self, state: State) -> None:
        self._epoch, found, inner = state
        self._has_yielded = bool(found)
        self.upstream.restore(inner)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._epoch, self._has_yielded = 0, False
        super().restart(reset_rng=reset_rng)


class RepeatCursor(EpochCursor):
    """Read one epoch after another."""

    def __init__(self, upstream: Cursor, stage: Repeat) -> None:
        super().__init__(upstream)
        self._stage = stage

    @override
    def items(self) -> Iterator[Any]:
        epochs = self._stage.num_repeats
        while epochs is None or self._epoch < epochs:
            items = self.upstream.items()
            first = next(items, _END)
            if first is not _END:
                self._has_yielded = True
                yield first
                yield from items
            if not self._has_yielded or self._epoch + 1 == epochs:
                return
            self._epoch, self._has_yielded = self._epoch + 1, False
            self.upstream.restart(reset_rng=self._stage.reset_rng)
