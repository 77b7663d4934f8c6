"""Yield the results of concurrent calls in item order, from a sliding window."""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.core.stage import Cursor, State
from dagster_dataops.streams.parallel.parallel_cursor import END, ConcurrentCalls, ParallelCursor
from dagster_dataops.streams.stages.mapping import with_failures, without_failures

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dagster_dataops.streams.parallel.callers import Caller

_WINDOW: Final = 4  # window size per worker; one slow item does not stall the others


class OrderedCursor(ParallelCursor):
    """Yield results in order. The state is the position before the oldest unfinished item."""

    def __init__(self, upstream: Cursor, calls: ConcurrentCalls, counter: FailureCounter) -> None:
        super().__init__(upstream, calls, counter)
        self._waiting: deque[tuple[State, Any, Future[Any]]] = deque()

    @override
    def results(self, caller: "Caller") -> Iterator[Any]:
        waiting, upstream = self._waiting, self.upstream.items()
        window, ended = _WINDOW * self.calls.at_once, False
        while True:
            while not ended and len(waiting) < window:
                before = self.upstream.state()
                item = self.next_item(upstream)
                ended = item is END
                if not ended:
                    waiting.append((before, item, caller.submit(item)))
            if not waiting:
                return
            _, item, future = waiting[0]
            try:
                result = future.result()
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                self.counter.settle(item, error)
                waiting.popleft()
            else:
                waiting.popleft()
                yield result

    @override
    def state(self) -> State:
        inner = self._waiting[0][0] if self._waiting else self.upstream.state()
        return with_failures(self.counter, inner)

    @override
    def restore(self, state: State) -> None:
        self._waiting = deque()
        self.upstream.restore(without_failures(self.counter, state))

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        if self._waiting:
            self.upstream.restore(self._waiting[0][0])
        self._waiting = deque()
        super().restart(reset_rng=reset_rng)
