"""Yield the results of concurrent calls as they finish, each once."""

from collections.abc import Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar, Final

from typing_extensions import override

from dagster_dataops.streams.core.stage import State
from dagster_dataops.streams.parallel.parallel_map import END, ParallelMap

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dagster_dataops.streams.parallel.callers import Caller

# The number of items per worker that results may run ahead of the oldest item.
_MAX_AHEAD: Final = 1000


@dataclass(eq=False)
class UnorderedMap(ParallelMap):
    """Yield results as they finish.

    The position before the oldest item without a yielded result is saved, and the distances from it
    to later items whose results were yielded.
    """

    deterministic: ClassVar[bool] = False
    saved: ClassVar[tuple[str, ...]] = ("failed", "yielded")

    @override
    def reset(self) -> None:
        self._waiting: dict[int, State] = {}  # the state before each unfinished item, by number
        self._yielded: set[int] = set()  # numbers above the oldest unfinished one
        self._number = 0

    @property
    def yielded(self) -> list[int]:
        """The distances from the oldest unfinished item to items with a yielded result."""
        oldest = next(iter(self._waiting), self._number)
        return sorted(one - oldest for one in self._yielded if one >= oldest)

    @yielded.setter
    def yielded(self, yielded: list[int]) -> None:
        self._yielded = set(yielded)

    @override
    def states_before(self) -> list[State] | None:
        return list(self._waiting.values())[:1] or None

    @override
    def results(self, caller: "Caller") -> Iterator[Any]:
        upstream = self.source.items()
        finished: SimpleQueue[tuple[int, Any, Future[Any]]] = SimpleQueue()
        ended = False
        while True:
            while not ended and self._may_run_ahead():
                ended = not self._submit(caller, upstream, finished)
            if not self._waiting:
                return
            number, item, future = finished.get()
            try:
                result = future.result()
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                self.counter.settle(item, error)
                self._mark_yielded(number)
            else:
                self._mark_yielded(number)
                yield result

    def _may_run_ahead(self) -> bool:
        workers = self.num_parallel_calls
        oldest = next(iter(self._waiting), self._number)
        return len(self._waiting) < 2 * workers and self._number - oldest < _MAX_AHEAD * workers

    def _submit(
        self,
        caller: "Caller",
        upstream: Iterator[Any],
        finished: "SimpleQueue[tuple[int, Any, Future[Any]]]",
    ) -> bool:
        before = self.source.state()
        item = self.next_item(upstream)
        if item is END:
            return False
        number, self._number = self._number, self._number + 1
        if number not in self._yielded:
            self._waiting[number] = before
            future = caller.submit(item)
            future.add_done_callback(lambda done: finished.put((number, item, done)))
        return True

    def _mark_yielded(self, number: int) -> None:
        del self._waiting[number]
        self._yielded.add(number)
        oldest = next(iter(self._waiting), self._number)
        self._yielded = {one for one in self._yielded if one > oldest}
