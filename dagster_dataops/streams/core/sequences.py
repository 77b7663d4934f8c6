"""Sources in memory: sequences, counters and constants."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar, Final

from typing_extensions import override

from dagster_dataops.hashing.values import digest
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.stage import Cursor, ReadContext, SourceStage, State

_MUTABLE: Final = frozenset({dict, list, tuple})  # a tuple may hold mutable items
_MAX_DIGESTED_ITEMS: Final = 10_000  # items of a sequence that enter its digest


def fresh(item: Any) -> Any:
    """Return a deep copy of an item, so that functions cannot change the source."""
    kind = type(item)
    if kind is dict:
        return {key: fresh(one) if type(one) in _MUTABLE else one for key, one in item.items()}
    if kind is list:
        return [fresh(one) if type(one) in _MUTABLE else one for one in item]
    return tuple(map(fresh, item)) if kind is tuple else item


@dataclass(frozen=True, eq=False)
class SequenceSource(SourceStage):
    """Yield the items of a list or tuple."""

    name: ClassVar[str] = "read_sequence"
    items: tuple[Any, ...]

    @override
    def open(self, context: ReadContext) -> Cursor:
        return SequenceCursor(self.items)

    @classmethod
    def of(cls, items: Any) -> "SequenceSource":
        """Return a source with a deep copy of ``items``."""
        return cls(tuple(map(fresh, items)))

    @override
    def options(self) -> dict[str, Any]:
        return {}

    @override
    def identity(self) -> object:
        step = max(1, len(self.items) // _MAX_DIGESTED_ITEMS)
        return [len(self.items), digest(self.items[::step])]


class SequenceCursor(Cursor):
    """Read a tuple. The state is the index of the next item."""

    def __init__(self, items: tuple[Any, ...]) -> None:
        self._items = items
        self._remaining: Any = iter(items)
        self._mutable = not {type(item) for item in items}.isdisjoint(_MUTABLE)

    @override
    def items(self) -> Iterator[Any]:
        return map(fresh, self._remaining) if self._mutable else iter(self._remaining)

    @override
    def state(self) -> State:
        return len(self._items) - self._remaining.__length_hint__()

    @override
    def restore(self, state: State) -> None:
        self._remaining = iter(self._items)
        self._remaining.__setstate__(state)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._remaining = iter(self._items)


@dataclass(frozen=True, eq=False)
class CountSource(SourceStage):
    """Yield ``start``, ``start + step`` and so on."""

    name: ClassVar[str] = "count"
    ends: ClassVar[Finitude] = Finitude.PSEUDO_INFINITE
    start: int
    step: int
    key: str | None

    @override
    def open(self, context: ReadContext) -> Cursor:
        return CountCursor(self)


class CountCursor(Cursor):
    """Count. The state is the next number."""

    def __init__(self, stage: CountSource) -> None:
        self._stage = stage
        self._next = stage.start

    @override
    def items(self) -> Iterator[Any]:
        step, key = self._stage.step, self._stage.key
        while True:
            number = self._next
            self._next = number + step
            yield number if key is None else {key: number}

    @override
    def state(self) -> State:
        return self._next

    @override
    def restore(self, state: State) -> None:
        self._next = state

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._next = self._stage.start


@dataclass(frozen=True, eq=False)
class ConstantSource(SourceStage):
    """Yield one item again and again."""

    name: ClassVar[str] = "constant"
    ends: ClassVar[Finitude] = Finitude.PSEUDO_INFINITE
    example: Any
    key: str | None

    @override
    def open(self, context: ReadContext) -> Cursor:
        return ConstantCursor(self)


class ConstantCursor(Cursor):
    """Repeat one item. The state is always ``None``."""

    def __init__(self, stage: ConstantSource) -> None:
        self._stage = stage

    @override
    def items(self) -> Iterator[Any]:
        example = self._stage.example
        if self._stage.key is not None:
            example = {self._stage.key: example}
        return map(fresh, repeat(example)) if type(example) in _MUTABLE else repeat(example)

    @override
    def state(self) -> State:
        return None

    @override
    def restore(self, state: State) -> None:
        pass

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        pass
