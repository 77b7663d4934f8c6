"""``map`` with concurrent calls, in item order or as the calls finish."""

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.selectors.selector import Selector
from dagster_dataops.streams.core.stage import State, UnaryStage
from dagster_dataops.streams.stages.mapping import Function, composed

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dagster_dataops.streams.parallel.callers import Caller

Mode: TypeAlias = Literal["thread", "process", "async"]
MODES: Final = ("thread", "process", "async")
_END: Final = object()
_WINDOW: Final = 4  # window size per worker; one slow item does not stall the others
# The number of items per worker that results may run ahead of the oldest item.
_MAX_AHEAD: Final = 1000


@dataclass(eq=False)
class ParallelMap(UnaryStage):
    """`Map` with ``num_parallel_calls`` concurrent calls."""

    name: ClassVar[str] = "map"
    left_out: ClassVar[frozenset[str]] = frozenset({"num_parallel_calls", "mode"})
    deterministic: ClassVar[bool]
    functions: tuple[Function, ...]
    selector: Selector | None
    num_parallel_calls: int
    mode: Mode | None

    @override
    def options(self) -> dict[str, Any]:
        return {**super().options(), "deterministic": self.deterministic}

    @override
    def items(self) -> Iterator[Any]:
        caller = self._new_caller()
        self.failure: Exception | None = None  # of the input; raised after earlier results
        try:
            yield from self.results(caller)
        finally:
            caller.close()
        if self.failure is not None:
            raise self.failure

    @abstractmethod
    def results(self, caller: "Caller") -> Iterator[Any]:
        """Yield the results of the calls; read the input with `next_item`."""

    def next_item(self, upstream: Iterator[Any]) -> Any:
        """Return the next item; ``_END`` if the input ends or fails."""
        try:
            return next(upstream, _END)
        except Exception as error:  # noqa: BLE001 - raised after the results before it
            self.failure = error
            return _END

    def _new_caller(self) -> "Caller":
        from dagster_dataops.streams.parallel.callers import (
            caller_for,  # event loops and pools take a while
        )

        function = composed(self.functions)
        if self.selector is not None:
            function = partial(self.selector.map, function)  # a mapper cannot be pickled
        return caller_for(function, self.num_parallel_calls, self.mode)


@dataclass(eq=False)
class OrderedMap(ParallelMap):
    """Yield results in order. The position before the oldest unfinished item is saved."""

    deterministic: ClassVar[bool] = True
    keeps_step: ClassVar[bool] = True
    elastic: ClassVar[bool] = True
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
        result: Any = None
        while True:
            while not ended and len(waiting) < window:
                before = self.source.state()
                item = self.next_item(upstream)
                ended = item is _END
                if not ended:
                    waiting.append((before, item, caller.submit(item)))
            if not waiting:
                return
            _, item, future = waiting[0]
            try:
                result = future.result()
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                result = self.counter.handle(item, error, result)
                waiting.popleft()
            else:
                waiting.popleft()
                yield result


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
        return sorted(number - oldest for number in self._yielded if number >= oldest)

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
        ended, result = False, None
        while True:
            while not ended and self._may_run_ahead():
                ended = not self._submit(caller, upstream, finished)
            if not self._waiting:
                return
            number, item, future = finished.get()
            try:
                result = future.result()
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                result = self.counter.handle(item, error, result)
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
        if item is _END:
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
        self._yielded = {number for number in self._yielded if number > oldest}
