"""``repeat``: read the stream for several epochs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.stage import UnaryStage

_END: Final = object()


@dataclass(eq=False)
class EpochStage(UnaryStage):
    """A stage that reads ``epochs`` epochs, or epochs without end if it is ``None``.

    The epoch is saved, and whether it has yielded an item.
    """

    saved: ClassVar[tuple[str, ...]] = ("_epoch", "_has_yielded")
    epochs: int | None

    @property
    @override
    def finitude(self) -> Finitude:
        return Finitude.INFINITE if self.epochs is None else self.upstream.finitude

    @override
    def endless(self) -> Any:
        return self if self.epochs is None else super().endless()

    @override
    def reset(self) -> None:
        self._epoch, self._has_yielded = 0, False


@dataclass(eq=False)
class Repeat(EpochStage):
    """Yield the items of one epoch after another. A stream without items ends at once."""

    name: ClassVar[str] = "repeat"
    takes_unread: ClassVar[bool] = True
    elastic: ClassVar[bool] = True
    reset_rng: bool

    @override
    def items(self) -> Iterator[Any]:
        epochs = self.epochs
        while epochs is None or self._epoch < epochs:
            items = self.source.items()
            first = next(items, _END)
            if first is not _END:
                self._has_yielded = True
                yield first
                yield from items
            if not self._has_yielded or self._epoch + 1 == epochs:
                return
            self._epoch, self._has_yielded = self._epoch + 1, False
            self.source.restart(reset_rng=self.reset_rng)
