"""``map``, also with random numbers, and ``filter``: functions of one item after another."""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.selectors.selector import Selector
from dagster_dataops.streams.core.element_numbers import NumberedStage
from dagster_dataops.streams.core.seeds import derive_seed, seeded_random
from dagster_dataops.streams.core.stage import ReadContext, State, UnaryStage

Function: TypeAlias = Callable[[Any], Any]


@dataclass(eq=False)
class CallingStage(UnaryStage):
    """A stage that calls a function with each item. The number of failures is saved."""

    saved: ClassVar[tuple[str, ...]] = ("failed",)
    elementwise: ClassVar[bool] = True

    @override
    def state(self) -> State:  # as the base does it, but it is called for every item
        return {"failed": self.counter.count, "inputs": [self.opened[0].state()]}


@dataclass(eq=False)
class Map(CallingStage):
    """Apply functions, one after another, to each item or to the parts that a selector selects."""

    name: ClassVar[str] = "map"
    keeps_step: ClassVar[bool] = True
    elastic: ClassVar[bool] = True
    functions: tuple[Function, ...]
    selector: Selector | None

    @override
    def items(self) -> Iterator[Any]:
        function, result = self.function(), self.counter.before
        for item in self.source.items():
            try:
                result = function(item)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                result = self.counter.handle(item, error, result)
            else:
                yield result
        self.counter.end(result)

    def function(self) -> Function:
        """Return the whole mapping as one function of an item."""
        chained = composed(self.functions)
        return chained if self.selector is None else self.selector.mapper(chained)


def composed(functions: tuple[Function, ...]) -> Function:
    """Return functions, applied in order, as one function."""
    if len(functions) == 1:
        return functions[0]

    def chained(item: Any) -> Any:
        for function in functions:
            item = function(item)
        return item

    return chained


@dataclass(eq=False)
class RandomMap(NumberedStage):
    """Apply functions of an item, or of its selected parts, and of a ``random.Random``.

    Each item gets a generator of its own, shared by its functions and parts. Its seed is derived
    from the seed of the stream, the path of the stage and the number of the item.
    """

    name: ClassVar[str] = "map"
    saved: ClassVar[tuple[str, ...]] = ("failed", "begun")
    keeps_step: ClassVar[bool] = True
    elastic: ClassVar[bool] = True
    functions: tuple[Callable[..., Any], ...]
    selector: Selector | None

    @override
    def options(self) -> dict[str, Any]:
        return {**super().options(), "random": True}

    @override
    def seed_in(self, root: int) -> int:
        return derive_seed(root, self.path)

    @override
    def begin(self, context: ReadContext) -> None:
        super().begin(context)
        self._seed = self.seed_in(context.seed)

    @override
    def items(self) -> Iterator[Any]:
        functions, selector, result = self.functions, self.selector, self.counter.before
        for item in self.source.items():
            random = seeded_random(self._seed, *self.next_number())

            def function(part: Any) -> Any:
                for function in functions:
                    part = function(part, random)  # noqa: B023 - called in this round alone
                return part

            try:
                result = function(item) if selector is None else selector.map(function, item)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                result = self.counter.handle(item, error, result)
            else:
                yield result
        self.counter.end(result)


class CurrentIndex(NamedTuple):
    """The kind and the number of the item that an `IndexedMap` processes, counted from 0."""

    kind: str
    number: int


_CURRENT: Final[ContextVar[CurrentIndex]] = ContextVar("dataops_current_index")


def current_index() -> CurrentIndex | None:
    """Return the number of the item whose function runs; ``None`` outside of an `IndexedMap`."""
    return _CURRENT.get(None)


@dataclass(eq=False)
class IndexedMap(NumberedStage):
    """Apply functions to each item; while they run, `current_index` returns its number.

    ``kind`` is the kind of the items, for `current_index`.
    """

    name: ClassVar[str] = "map"
    saved: ClassVar[tuple[str, ...]] = ("failed", "begun")
    keeps_step: ClassVar[bool] = True
    elastic: ClassVar[bool] = True
    functions: tuple[Function, ...]
    kind: str

    @override
    def options(self) -> dict[str, Any]:
        return {**super().options(), "indexed": True}

    @override
    def items(self) -> Iterator[Any]:
        function, result = composed(self.functions), self.counter.before
        for item in self.source.items():
            token = _CURRENT.set(CurrentIndex(self.kind, self.next_number()[0]))
            try:
                result = function(item)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                result = self.counter.handle(item, error, result)
                continue
            finally:
                _CURRENT.reset(token)
            yield result
        self.counter.end(result)


@dataclass(eq=False)
class Filter(CallingStage):
    """Keep the items for which a function of the item, or of its selected part, returns true."""

    name: ClassVar[str] = "filter"
    elastic: ClassVar[bool] = True
    fn: Function
    selector: Selector | None

    def function(self) -> Function:
        """Return the predicate as a function of an item."""
        if self.selector is None:
            return self.fn
        get, fn = self.selector.get, self.fn
        return lambda item: fn(get(item))

    @override
    def items(self) -> Iterator[Any]:
        function, wanted = self.function(), self.counter.before
        for item in self.source.items():
            try:
                wanted = function(item)
                if wanted is not True and wanted is not False and wanted is not None:
                    wanted = _as_bool(wanted)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                wanted = self.counter.handle(item, error, wanted)
                continue
            if wanted:
                yield item
        self.counter.end(wanted)


def _as_bool(value: Any) -> bool:
    """Return the truth value of a number; refuse texts and containers."""
    if isinstance(value, (str, bytes, list, tuple, dict, set)):
        msg = f"the function of a filter must return True or False, not a {type(value).__name__}"
        raise RuntimeError(msg)  # noqa: TRY004 - a wrong result, not a wrong argument
    return bool(value)
