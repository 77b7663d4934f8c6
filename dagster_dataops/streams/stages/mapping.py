"""``map`` and ``filter``, one item after another."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from typing_extensions import override

from dagster_dataops.selectors.selector import Selector
from dagster_dataops.streams.core.item_failures import Counter
from dagster_dataops.streams.core.stage import Cursor, Opening, State, Step, StepCursor

Function: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Map(Step):
    """Every item, changed by functions one after another, all of it or what is selected."""

    name: ClassVar[str] = "map"
    functions: tuple[Function, ...]
    selector: Selector | None

    @override
    def open(self, opening: Opening) -> Cursor:
        counter = opening.failures.counter(self.name)
        return MapCursor(self.upstream.open(opening), self.function(), counter)

    def function(self) -> Function:
        """Return all of it as one function of an item."""
        chained = _chained(self.functions)
        return chained if self.selector is None else self.selector.mapper(chained)


def _chained(functions: tuple[Function, ...]) -> Function:
    if len(functions) == 1:
        return functions[0]

    def chained(item: Any) -> Any:
        for function in functions:
            item = function(item)
        return item

    return chained


class CountingCursor(StepCursor):
    """A cursor that calls functions of the caller's, which may fail."""

    def __init__(self, upstream: Cursor, function: Function, counter: Counter) -> None:
        super().__init__(upstream)
        self.function = function
        self.counter = counter

    @override
    def state(self) -> State:
        return with_failures(self.counter, self.upstream.state())

    @override
    def restore(self, state: State) -> None:
        self.upstream.restore(without_failures(self.counter, state))


def with_failures(counter: Counter, state: State) -> State:
    """Return a state that tells how many failures there were, where failures are counted."""
    return [counter.count, state] if counter.saved else state


def without_failures(counter: Counter, state: State) -> State:
    """Return what `with_failures` was given, the count put back."""
    if not counter.saved:
        return state
    counter.count, inner = state
    return inner


class MapCursor(CountingCursor):
    """Calls a function for every item."""

    @override
    def items(self) -> Iterator[Any]:
        function = self.function
        for item in self.upstream.items():
            try:
                result = function(item)
            except Exception as error:  # noqa: BLE001 - whatever the function raises
                self.counter.settle(item, error)
            else:
                yield result


@dataclass(frozen=True, eq=False)
class Filter(Step):
    """The items for which a function, of the item or what is selected of it, is true."""

    name: ClassVar[str] = "filter"
    fn: Function
    selector: Selector | None

    @override
    def open(self, opening: Opening) -> Cursor:
        counter = opening.failures.counter(self.name)
        return FilterCursor(self.upstream.open(opening), self._function(), counter)

    def _function(self) -> Function:
        if self.selector is None:
            return self.fn
        get, fn = self.selector.get, self.fn
        return lambda item: fn(get(item))


class FilterCursor(CountingCursor):
    """Asks a function about every item."""

    @override
    def items(self) -> Iterator[Any]:
        function = self.function
        for item in self.upstream.items():
            try:
                wanted = function(item)
                if wanted is not True and wanted is not False and wanted is not None:
                    wanted = _as_bool(wanted)
            except Exception as error:  # noqa: BLE001 - whatever the function raises
                self.counter.settle(item, error)
                continue
            if wanted:
                yield item


def _as_bool(value: Any) -> bool:
    """Return what a number stands for; a text or a list is a mistake."""
    if isinstance(value, (str, bytes, list, tuple, dict, set)):
        msg = f"a filter's function says True or False; this one returned a {type(value).__name__}"
        raise RuntimeError(msg)  # noqa: TRY004 - not the wrong type of an argument
    return bool(value)
