"""Yield the results of concurrent calls as they finish, each once."""

from collections.abc import Iterator
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.core.stage import Cursor, State
from dagster_dataops.streams.parallel.parallel_cursor import END, ConcurrentCalls, ParallelCursor
from dagster_dataops.streams.stages.mapping import with_failures, without_failures

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dagster_dataops.streams.parallel.callers import Caller

# The number of items per worker that results may run ahead of the oldest item.
_MAX_AHEAD: Final = 1000


class UnorderedCursor(ParallelCursor):
    """Yield results as they finish.

    The state is the position before the oldest item without a yielded result, and the distances
    from it to later items whose results were yielded.
    """

    def __init__(self, upstream: Cursor, calls: ConcurrentCalls, counter: FailureCounter) -> None:
        super().__init__(upstream, calls, counter)
        self._waiting: dict[int, State] = {}  # the state before each unfinished item, by number
        self._yielded: set[int] = set()  # numbers above the oldest unfinished one
        self._number = 0

    @override
    def results(self, caller: "Caller") -> Iterator[Any]:
        upstream = self.upstream.items()
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
        workers = self.calls.at_once
        oldest = next(iter(self._waiting), self._number)
        return len(self._waiting) < 2 * workers and self._number - oldest < _MAX_AHEAD * workers

    def _submit(
        self,
        caller: "Caller",
        upstream: Iterator[Any],
        finished: "SimpleQueue[tuple[int, Any, Future[Any]]]",
    ) -> bool:
        before = self.upstream.state()
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

    @override
    def state(self) -> State:
        for oldest, before in self._waiting.items():
            place = [before, sorted(one - oldest for one in self._yielded if one > oldest)]
            break
        else:
            ahead = [one - self._number for one in self._yielded if one >= self._number]
            place = [self.upstream.state(), sorted(ahead)]
        return with_failures(self.counter, place)

    @override
    def restore(self, state: State) -> None:
        before, yielded = without_failures(self.counter, state)
        self._waiting, self._number, self._yielded = {}, 0, set(yielded)
        self.upstream.restore(before)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        if self._waiting:
            self.upstream.restore(next(iter(self._waiting.values())))
        self._waiting, self._number, self._yielded = {}, 0, set()
        super().restart(reset_rng=reset_rng)
