"""``sample``: yield items of several streams, chosen at random by weight."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, Final

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.finitude import Finitude, mixed_finitude
from dagster_dataops.streams.core.seeds import RandomNumbers, derive_seed
from dagster_dataops.streams.core.stage import CombinedStage, ReadContext, State

_END: Final = object()
_UNREAD: Final = object()


class DrawingStage(CombinedStage):
    """A stage that draws the input of each item: draw i is the i-th number of the seed.

    Attributes:
        seed: The seed of the draws; ``None`` to derive it from the seed of the stream.
    """

    seed: int | None

    @override
    def seed_in(self, root: int) -> int:
        return derive_seed(root, self.path) if self.seed is None else self.seed

    @override
    def begin(self, context: ReadContext) -> None:
        self._seed = self.seed_in(context.seed)
        self._draws = RandomNumbers(self._seed)

    @property
    def drawn(self) -> int:
        """The number of draws."""
        return self._draws.number

    @drawn.setter
    def drawn(self, number: int) -> None:
        self._draws = RandomNumbers(self._seed, number)


@dataclass(eq=False)
class SampleStage(DrawingStage):
    """Choose a stream by weight for each item, until every stream has ended once.

    A stream that has ended starts again. With ``allow_repeats=False`` it is left out and its weight
    is given to the others. The number of draws is saved, and the position before the next item of
    each stream. One item of each stream is read ahead, to detect which streams have ended.
    Restoring reads it again. Draws are numbered across epochs.
    """

    name: ClassVar[str] = "sample"
    takes_unread: ClassVar[bool] = True
    saved: ClassVar[tuple[str, ...]] = ("_seed", "drawn", "_ended")
    weights: tuple[float, ...]
    seed: int | None
    allow_repeats: bool

    @property
    @override
    def finitude(self) -> Finitude:
        return mixed_finitude([source.finitude for source in self.sources])

    @override
    def reset(self) -> None:
        self._ended = self.pseudo_infinite  # part of states, so never changed in place
        self._before: list[State] = [None] * len(self.opened)
        self._heads: list[Any] = [_UNREAD] * len(self.opened)

    @override
    def states_before(self) -> list[State]:
        return [
            source.state() if head is _UNREAD else before
            for source, head, before in zip(self.opened, self._heads, self._before, strict=True)
        ]

    @override
    def items(self) -> Iterator[Any]:
        iterators = [source.items() for source in self.opened]
        heads, before, sources = self._heads, self._before, self.opened
        for at in range(len(heads)):
            self._read(at, iterators)
        if all(self._ended):
            return
        limits = self._limits()
        for draw in self._draws:
            at = bisect_right(limits, draw * limits[-1])
            while at == len(heads) or heads[at] is _END:  # the product can be rounded up to the sum
                at -= 1
            item = heads[at]
            heads[at] = _UNREAD
            yield item
            before[at] = sources[at].state()
            head = next(iterators[at], _END)
            heads[at] = head
            if head is _END:
                self._end(at, iterators)
                if all(self._ended):
                    return
                limits = self._limits()

    def _read(self, at: int, iterators: list[Iterator[Any]]) -> None:
        """Read the next item of a stream."""
        self._before[at] = self.opened[at].state()
        self._heads[at] = next(iterators[at], _END)
        if self._heads[at] is _END:
            self._end(at, iterators)

    def _end(self, at: int, iterators: list[Iterator[Any]]) -> None:
        """Restart a stream that has ended, if allowed."""
        self._ended = [ended or number == at for number, ended in enumerate(self._ended)]
        self._before[at] = self.opened[at].state()
        if not (self.allow_repeats or self.pseudo_infinite[at]):
            return
        self.opened[at].restart()
        iterators[at] = self.opened[at].items()
        self._before[at] = self.opened[at].state()
        self._heads[at] = next(iterators[at], _END)
        if self._heads[at] is _END:
            msg = (
                f"sample: the stream at index {at} is empty and cannot be sampled; leave it out, "
                "or set allow_repeats=False"
            )
            raise DataPipelineError(msg)

    def _limits(self) -> list[float]:
        """Return the cumulative weights of the streams that have an item."""
        pairs = zip(self.weights, self._heads, strict=True)
        return list(accumulate(0.0 if head is _END else weight for weight, head in pairs))

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        for source, head, before in zip(self.opened, self._heads, self._before, strict=True):
            if head is not _UNREAD:
                source.restore(before)
        self.reset()
        self.drawn = 0 if reset_rng else self.drawn
        for source in self.opened:
            source.restart(reset_rng=reset_rng)
