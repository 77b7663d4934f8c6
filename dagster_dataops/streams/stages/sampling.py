"""``sample``: yield items of several streams, chosen at random by weight."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, Final

from typing_extensions import override

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.streams.core.finitude import Finitude, mixed_finitude
from dagster_dataops.streams.core.seeds import RandomNumbers, derive_seed
from dagster_dataops.streams.core.stage import CombinedStage, Cursor, ReadContext, State
from dagster_dataops.streams.stages.concatenating import CombinedCursor

_END: Final = object()
_UNREAD: Final = object()


@dataclass(frozen=True, eq=False)
class SampleStage(CombinedStage):
    """Choose a stream by weight for each item, until every stream has ended once.

    A stream that has ended starts again. With ``allow_repeats=False`` it is left out and its weight
    goes to the others.
    """

    name: ClassVar[str] = "sample"
    weights: tuple[float, ...]
    seed: int | None
    allow_repeats: bool

    @property
    @override
    def finitude(self) -> Finitude:
        return mixed_finitude([one.finitude for one in self.sources])

    @override
    def open(self, context: ReadContext) -> Cursor:
        sources = [one.open(context) for one in self.sources]
        return SampleCursor(sources, self, self.seed_in(context.seed))

    @override
    def seed_in(self, root: int) -> int:
        """Return the seed of the stage in a stream of seed ``root``."""
        return derive_seed(root, self.path) if self.seed is None else self.seed


class SampleCursor(CombinedCursor):
    """The state is the number of draws, and the position before the next item of each stream.

    One item of each stream is read ahead, to detect which streams have ended. Restoring reads it
    again. Draws are numbered across epochs.
    """

    def __init__(self, sources: list[Cursor], stage: SampleStage, seed: int) -> None:
        super().__init__(sources)
        self._stage = stage
        self._seed = seed
        self._draws = RandomNumbers(seed)
        self._pseudo = [one.finitude is Finitude.PSEUDO_INFINITE for one in stage.sources]
        self._ended = list(self._pseudo)
        self._before: list[State] = [None] * len(sources)
        self._heads: list[Any] = [_UNREAD] * len(sources)

    @override
    def items(self) -> Iterator[Any]:
        iterators = [one.items() for one in self.sources]
        heads, before, sources = self._heads, self._before, self.sources
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
        self._before[at] = self.sources[at].state()
        self._heads[at] = next(iterators[at], _END)
        if self._heads[at] is _END:
            self._end(at, iterators)

    def _end(self, at: int, iterators: list[Iterator[Any]]) -> None:
        """Restart a stream that has ended, if allowed.

        Raises:
            DataPipelineError: The stream is empty.
        """
        self._ended[at] = True
        self._before[at] = self.sources[at].state()
        if not (self._stage.allow_repeats or self._pseudo[at]):
            return
        self.sources[at].restart()
        iterators[at] = self.sources[at].items()
        self._before[at] = self.sources[at].state()
        self._heads[at] = next(iterators[at], _END)
        if self._heads[at] is _END:
            msg = (
                f"sample: the stream at index {at} is empty and cannot be sampled; leave it out, "
                "or set allow_repeats=False"
            )
            raise DataPipelineError(msg)

    def _limits(self) -> list[float]:
        """Return the cumulative weights of the streams that have an item."""
        pairs = zip(self._stage.weights, self._heads, strict=True)
        return list(accumulate(0.0 if head is _END else weight for weight, head in pairs))

    @override
    def state(self) -> State:
        positions = [
            one.state() if head is _UNREAD else before
            for one, head, before in zip(self.sources, self._heads, self._before, strict=True)
        ]
        return [self._seed, self._draws.number, [int(end) for end in self._ended], positions]

    @override
    def restore(self, state: State) -> None:
        self._seed, number, ended, positions = state
        self._draws = RandomNumbers(self._seed, number)
        self._ended = [bool(end) for end in ended]
        self._heads = [_UNREAD] * len(self.sources)
        super().restore(positions)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        for one, head, before in zip(self.sources, self._heads, self._before, strict=True):
            if head is not _UNREAD:
                one.restore(before)
        self._draws = RandomNumbers(self._seed, 0 if reset_rng else self._draws.number)
        self._ended = list(self._pseudo)
        self._heads = [_UNREAD] * len(self.sources)
        super().restart(reset_rng=reset_rng)
