"""Sources in memory: sequences, counters and constants."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar, Final

from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.stage import SourceStage, State

_MUTABLE: Final = frozenset({dict, list, tuple})  # a tuple may hold mutable items
_MAX_DIGESTED_ITEMS: Final = 10_000  # items of a sequence that enter its digest


def fresh(item: Any) -> Any:
    """Return a deep copy of an item, so that functions cannot change the source."""
    kind = type(item)
    if kind is dict:
        return {
            key: fresh(value) if type(value) in _MUTABLE else value for key, value in item.items()
        }
    if kind is list:
        return [fresh(value) if type(value) in _MUTABLE else value for value in item]
    return tuple(map(fresh, item)) if kind is tuple else item


@dataclass(eq=False)
class SequenceSource(SourceStage):
    """Yield the items of a list or tuple. The index of the next item is saved."""

    name: ClassVar[str] = "read_sequence"
    saved: ClassVar[tuple[str, ...]] = ("_next",)
    left_out: ClassVar[frozenset[str]] = frozenset({"sequence"})
    sequence: tuple[Any, ...]

    @classmethod
    def of(cls, items: Any) -> "SequenceSource":
        """Return a source with a deep copy of ``items``."""
        return cls(tuple(map(fresh, items)))

    @override
    def identity(self) -> object:
        step = max(1, len(self.sequence) // _MAX_DIGESTED_ITEMS)
        return [len(self.sequence), digest(self.sequence[::step])]

    @override
    def reset(self) -> None:
        self._remaining: Any = iter(self.sequence)

    @override
    def state(self) -> State:
        return {"next": len(self.sequence) - self._remaining.__length_hint__()}

    @property
    def _next(self) -> int:
        """The index of the next item."""
        return len(self.sequence) - int(self._remaining.__length_hint__())

    @_next.setter
    def _next(self, index: int) -> None:
        self._remaining.__setstate__(index)

    @override
    def items(self) -> Iterator[Any]:
        mutable = not _MUTABLE.isdisjoint(map(type, self.sequence))
        return map(fresh, self._remaining) if mutable else iter(self._remaining)


@dataclass(eq=False)
class CountSource(SourceStage):
    """Yield ``start``, ``start + step`` and so on. The state is the next number."""

    name: ClassVar[str] = "count"
    ends: ClassVar[Finitude] = Finitude.PSEUDO_INFINITE
    saved: ClassVar[tuple[str, ...]] = ("_next",)
    start: int
    step: int
    key: str | None

    @override
    def reset(self) -> None:
        self._next = self.start

    @override
    def items(self) -> Iterator[Any]:
        step, key = self.step, self.key
        while True:
            number = self._next
            self._next = number + step
            yield number if key is None else {key: number}


@dataclass(eq=False)
class ConstantSource(SourceStage):
    """Yield one item again and again. The state is always empty."""

    name: ClassVar[str] = "constant"
    ends: ClassVar[Finitude] = Finitude.PSEUDO_INFINITE
    example: Any
    key: str | None

    @override
    def items(self) -> Iterator[Any]:
        example = self.example if self.key is None else {self.key: self.example}
        return map(fresh, repeat(example)) if type(example) in _MUTABLE else repeat(example)
