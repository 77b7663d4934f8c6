"""Yield the results of concurrent calls in item order, from a sliding window."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from typing_extensions import override

from dagster_dataops.streams.core.stage import State
from dagster_dataops.streams.parallel.parallel_map import END, ParallelMap

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dagster_dataops.streams.parallel.callers import Caller

_WINDOW: Final = 4  # window size per worker; one slow item does not stall the others


@dataclass(eq=False)
class OrderedMap(ParallelMap):
    """Yield results in order. The position before the oldest unfinished item is saved."""

    deterministic: ClassVar[bool] = True
    saved: ClassVar[tuple[str, ...]] = ("failed",)

    @override
    def reset(self) -> None:
        self._waiting: deque[tuple[State, Any, Future[Any]]] = deque()

    @override
    def states_before(self) -> list[State] | None:
        return [self._waiting[0][0]] if self._waiting else None

    @override
    def results(self, caller: "Caller") -> Iterator[Any]:
        waiting, upstream = self._waiting, self.source.items()
        window, ended = _WINDOW * self.num_parallel_calls, False
        while True:
            while not ended and len(waiting) < window:
                before = self.source.state()
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
