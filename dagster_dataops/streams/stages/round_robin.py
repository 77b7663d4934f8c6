"""``round_robin``: yield one item of each stream in turn."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from typing_extensions import override

from dagster_dataops.streams.core.finitude import Finitude, mixed_finitude
from dagster_dataops.streams.core.stage import CombinedStage, Cursor, ReadContext, State
from dagster_dataops.streams.stages.concatenating import CombinedCursor

_END: Final = object()
_UNREAD: Final = object()


@dataclass(frozen=True, eq=False)
class RoundRobinStage(CombinedStage):
    """Yield rounds of one item from each stream, until every stream has ended once.

    A stream that has ended starts again, or is left out with ``allow_repeats=False``.
    """

    name: ClassVar[str] = "round_robin"
    stop_at_shortest: bool
    allow_repeats: bool

    @property
    @override
    def finitude(self) -> Finitude:
        kinds = [one.finitude for one in self.sources]
        if self.stop_at_shortest and any(kind is not Finitude.INFINITE for kind in kinds):
            return Finitude.FINITE
        return mixed_finitude(kinds)

    @override
    def open(self, context: ReadContext) -> Cursor:
        return RoundRobinCursor([one.open(context) for one in self.sources], self)


class RoundRobinCursor(CombinedCursor):
    """The state is the position before the current round, and the number of its yielded items.

    Before each round, one item of every stream that has not yet ended is read, to detect the last
    round. Restoring reads these items again.
    """

    def __init__(self, sources: list[Cursor], stage: RoundRobinStage) -> None:
        super().__init__(sources)
        self._stage = stage
        self._pseudo = [one.finitude is Finitude.PSEUDO_INFINITE for one in stage.sources]
        self._ended = list(self._pseudo)
        self._first, self._done, self._finished = True, 0, False
        self._before: State = None  # the state before the current round; None between rounds

    @override
    def items(self) -> Iterator[Any]:
        iterators = [one.items() for one in self.sources]
        while not self._finished:
            before = [[one.state() for one in self.sources], [int(end) for end in self._ended]]
            heads = self._heads(iterators)
            if not self._first and self._is_finished():
                self._finished = True
                return
            self._before = before
            passed, self._done = self._done, 0
            yield from self._round(iterators, heads, passed)
            if not self._done:  # all streams are empty
                self._finished = True
            self._first, self._done, self._before = False, 0, None

    def _heads(self, iterators: list[Iterator[Any]]) -> list[Any]:
        """Read one item of each stream that has not yet ended."""
        heads = [_UNREAD] * len(iterators)
        for at, ended in enumerate(self._ended):
            if not ended:
                heads[at] = next(iterators[at], _END)
                if heads[at] is _END:
                    self._ended[at] = True
                    heads[at] = self._restarted_item(at, iterators)
        return heads

    def _restarted_item(self, at: int, iterators: list[Iterator[Any]]) -> Any:
        """Restart a stream that has ended, if allowed, and return its first item."""
        if not (self._stage.allow_repeats or self._pseudo[at]):
            return _END
        self.sources[at].restart()
        iterators[at] = self.sources[at].items()
        return next(iterators[at], _END)

    def _is_finished(self) -> bool:
        return any(self._ended) if self._stage.stop_at_shortest else all(self._ended)

    def _round(
        self, iterators: list[Iterator[Any]], heads: list[Any], passed: int
    ) -> Iterator[Any]:
        for at, head in enumerate(heads):
            item = head
            if item is _UNREAD:
                item = next(iterators[at], _END)
                if item is _END:
                    item = self._restarted_item(at, iterators)
            if item is not _END:
                self._done += 1
                if self._done > passed:
                    yield item

    @override
    def state(self) -> State:
        sources, ended = self._before or [super().state(), [int(end) for end in self._ended]]
        return [sources, ended, self._done, int(self._first), int(self._finished)]

    @override
    def restore(self, state: State) -> None:
        sources, ended, self._done, first, over = state
        self._ended = [bool(end) for end in ended]
        self._first, self._finished, self._before = bool(first), bool(over), None
        super().restore(sources)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        if self._before is not None:
            super().restore(self._before[0])
        self._ended = list(self._pseudo)
        self._first, self._done, self._finished, self._before = True, 0, False, None
        super().restart(reset_rng=reset_rng)
