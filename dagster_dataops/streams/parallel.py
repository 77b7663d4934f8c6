"""``map`` with several calls at once, in a window that slides over the items."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from typing_extensions import override

from dagster_dataops.selectors.selector import Selector
from dagster_dataops.streams.failures import Counter
from dagster_dataops.streams.mapping import Function, Map, with_failures, without_failures
from dagster_dataops.streams.stage import Cursor, Opening, State, Step, StepCursor

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dagster_dataops.streams.calling import Caller

Mode: TypeAlias = Literal["thread", "process", "async"]
MODES: Final = ("thread", "process", "async")

_END: Final = object()
_WINDOW: Final = 4  # items a worker that are read ahead: a slow one holds up none of the others
_SPAN: Final = 1000  # items a worker by which results in any order may run ahead


@dataclass(frozen=True, eq=False)
class ParallelMap(Step):
    """`Map` with ``num_parallel_calls`` calls at once."""

    name: ClassVar[str] = "map"
    functions: tuple[Function, ...]
    selector: Selector | None
    num_parallel_calls: int
    deterministic: bool
    mode: Mode | None

    @override
    def open(self, opening: Opening) -> Cursor:
        counter = opening.failures.counter(self.name)
        kind = OrderedCursor if self.deterministic else UnorderedCursor
        return kind(self.upstream.open(opening), self, counter)

    @override
    def options(self) -> dict[str, Any]:
        left_out = {"num_parallel_calls", "mode"}  # how it is run is not what it yields
        return {name: one for name, one in super().options().items() if name not in left_out}

    def caller(self) -> "Caller":
        """Return who calls the functions."""
        from dagster_dataops.streams.calling import caller_for  # event loops and pools take a while

        plain = Map(self.upstream, self.functions, None)
        function = plain.function()
        if self.selector is not None:
            function = Selected(self.selector, function)
        return caller_for(function, self.num_parallel_calls, self.mode)


class Selected:
    """A function applied to what a selector selects, which can be sent to another process."""

    def __init__(self, selector: Selector, function: Function) -> None:
        self._selector, self._function = selector, function

    def __call__(self, item: Any) -> Any:
        """Return a changed copy of ``item``."""
        return self._selector.map(self._function, item)


class _ParallelCursor(StepCursor):
    def __init__(self, upstream: Cursor, stage: ParallelMap, counter: Counter) -> None:
        super().__init__(upstream)
        self.stage = stage
        self.counter = counter
        self.failure: Exception | None = None  # of the upstream, raised behind what came before

    @override
    def items(self) -> Iterator[Any]:
        caller = self.stage.caller()
        self.failure = None
        try:
            yield from self.results(caller)
        finally:
            caller.close()
        if self.failure is not None:
            raise self.failure

    def results(self, caller: "Caller") -> Iterator[Any]:
        raise NotImplementedError

    def pulled(self, upstream: Iterator[Any]) -> Any:
        """Return the next item; the end, too, where the upstream fails."""
        try:
            return next(upstream, _END)
        except Exception as error:  # noqa: BLE001 - raised when its turn has come
            self.failure = error
            return _END


class OrderedCursor(_ParallelCursor):
    """Yields results in order; its position is where the oldest item that waits begins."""

    def __init__(self, upstream: Cursor, stage: ParallelMap, counter: Counter) -> None:
        super().__init__(upstream, stage, counter)
        self._waiting: deque[tuple[State, Any, Future[Any]]] = deque()

    @override
    def results(self, caller: "Caller") -> Iterator[Any]:
        waiting, upstream = self._waiting, self.upstream.items()
        window, ended = _WINDOW * self.stage.num_parallel_calls, False
        while True:
            while not ended and len(waiting) < window:
                before = self.upstream.state()
                item = self.pulled(upstream)
                ended = item is _END
                if not ended:
                    waiting.append((before, item, caller.submit(item)))
            if not waiting:
                return
            _, item, future = waiting[0]
            try:
                result = future.result()
            except Exception as error:  # noqa: BLE001 - whatever the function raises
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
        self._waiting = deque()
        super().restart(reset_rng=reset_rng)


class UnorderedCursor(_ParallelCursor):
    """Yields results as they come.

    Its position is where the oldest item begins that was not yielded, and which of those behind
    it were, by their distance from it.
    """

    def __init__(self, upstream: Cursor, stage: ParallelMap, counter: Counter) -> None:
        super().__init__(upstream, stage, counter)
        self._waiting: dict[int, State] = {}  # by number, in order
        self._yielded: set[int] = set()  # numbers above the first that waits
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
            except Exception as error:  # noqa: BLE001 - whatever the function raises
                self.counter.settle(item, error)
                self._pass(number)
            else:
                self._pass(number)
                yield result

    def _may_run_ahead(self) -> bool:
        workers = self.stage.num_parallel_calls
        oldest = next(iter(self._waiting), self._number)
        return len(self._waiting) < 2 * workers and self._number - oldest < _SPAN * workers

    def _submit(
        self,
        caller: "Caller",
        upstream: Iterator[Any],
        finished: "SimpleQueue[tuple[int, Any, Future[Any]]]",
    ) -> bool:
        before = self.upstream.state()
        item = self.pulled(upstream)
        if item is _END:
            return False
        number, self._number = self._number, self._number + 1
        if number not in self._yielded:
            self._waiting[number] = before
            future = caller.submit(item)
            future.add_done_callback(lambda done: finished.put((number, item, done)))
        return True

    def _pass(self, number: int) -> None:
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
        self._waiting, self._number, self._yielded = {}, 0, set()
        super().restart(reset_rng=reset_rng)
