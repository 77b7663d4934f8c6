"""``round_robin``: yield one item of each stream in turn."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.finitude import Finitude, mixed_finitude
from dagster_dataops.streams.core.stage import CombinedStage, State

_END: Final = object()
_UNREAD: Final = object()


@dataclass(eq=False)
class RoundRobinStage(CombinedStage):
    """Yield rounds of one item from each stream, until every stream has ended once.

    A stream that has ended starts again, or is left out with ``allow_repeats=False``. The position
    before the current round is saved, and the number of its yielded items. Before each round, one
    item of every stream that has not yet ended is read, to detect the last round. Restoring reads
    these items again.
    """

    name: ClassVar[str] = "round_robin"
    takes_unread: ClassVar[bool] = True
    saved: ClassVar[tuple[str, ...]] = ("ended", "_done", "_first", "_finished")
    stop_at_shortest: bool
    allow_repeats: bool

    @property
    @override
    def finitude(self) -> Finitude:
        kinds = [source.finitude for source in self.sources]
        if self.stop_at_shortest and any(kind is not Finitude.INFINITE for kind in kinds):
            return Finitude.FINITE
        return mixed_finitude(kinds)

    @override
    def reset(self) -> None:
        self._ended = list(self.pseudo_infinite)
        self._first, self._done, self._finished = True, 0, False
        self._before: list[State] | None = None  # the inputs' states before the current round

    @property
    def ended(self) -> list[bool]:
        """Which streams had ended before the current round."""
        return list(self._ended if self._before is None else self._ended_before)

    @ended.setter
    def ended(self, ended: list[bool]) -> None:
        self._ended = list(ended)

    @override
    def states_before(self) -> list[State] | None:
        return self._before

    @override
    def items(self) -> Iterator[Any]:
        iterators = [source.items() for source in self.opened]
        while not self._finished:
            before, ended = [source.state() for source in self.opened], list(self._ended)
            heads = self._heads(iterators)
            if not self._first and self._is_finished():
                self._finished = True
                return
            self._before, self._ended_before = before, ended
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
        if not (self.allow_repeats or self.pseudo_infinite[at]):
            return _END
        self.opened[at].restart()
        iterators[at] = self.opened[at].items()
        return next(iterators[at], _END)

    def _is_finished(self) -> bool:
        return any(self._ended) if self.stop_at_shortest else all(self._ended)

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
