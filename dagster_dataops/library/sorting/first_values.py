"""Choose the first values by rank, of more than memory holds.

Numbers, texts and missing values are held apart. So values are compared as they are, in blocks.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from dagster_dataops.library.sorting.ordered_keys import ordered_key
from dagster_dataops.library.sorting.ranking import POSITION_BYTES, first_by_files, marked

Value: TypeAlias = str | float | None

_NUMBERS, _TEXTS, _MISSING = range(3)
_KINDS: Final = {int: _NUMBERS, float: _NUMBERS, bool: _NUMBERS, str: _TEXTS}
_ONLY_NUMBERS: Final = frozenset({int, float, bool})
_BLOCK_VALUES: Final = 4096
_ENTRY_BYTES: Final = 128  # of a value and its position in memory, also while they are sorted


def first_of_values(
    values: Iterator[Value], most: int, scratch: Path, max_bytes: int, *, reverse: bool
) -> Iterator[bool]:
    """Yield for each value whether it is one of the first ``most``.

    Args:
        values: The values, none of them NaN; they are ordered as their `ordered_key`.
        most: How many are kept; of equal ones, the first.
        scratch: An empty folder for files.
        max_bytes: The memory limit, without one bit per value.
        reverse: Whether the largest value comes first, and texts before numbers.
    """
    kinds = [_FirstOfKind(most, reverse=reverse) for _ in range(3)]
    start = 1
    while block := list(islice(values, _BLOCK_VALUES)):
        _add(kinds, block, range(start, start + len(block)))
        start += len(block)
        if sum(kind.size for kind in kinds) > max_bytes // 2:
            for kind in kinds:
                kind.cut()
            if sum(kind.size for kind in kinds) > max_bytes // 4:
                held = chain.from_iterable(kind.keys() for kind in kinds[:_MISSING])
                missing = kinds[_MISSING].keys(missing=True)
                rest = ((b"", ordered_key(value, reverse=reverse)) for value in values)
                return first_by_files(
                    chain(held, missing), rest, start - 1, scratch, max_bytes, most=most
                )
    order = (_TEXTS, _NUMBERS, _MISSING) if reverse else (_NUMBERS, _TEXTS, _MISSING)
    positions = chain.from_iterable(kinds[kind].positions() for kind in order)
    return marked(start - 1, islice(positions, most))


def _add(kinds: "Sequence[_FirstOfKind]", block: list[Any], positions: range) -> None:
    """Add the values of a block to those of their kinds."""
    types = set(map(type, block))
    if types <= _ONLY_NUMBERS:
        kinds[_NUMBERS].add(block, positions)
    elif types == {str}:
        kinds[_TEXTS].add(block, positions)
    else:
        numbers = [_KINDS.get(type(value), _MISSING) for value in block]
        values = [0 if value is None else value for value in block]
        for number, kind in enumerate(kinds):
            chosen = [of_value == number for of_value in numbers]
            kind.add(list(compress(values, chosen)), compress(positions, chosen))


class _FirstOfKind:
    """The first values of one kind, and their positions.

    Up to twice as many are held; then the later half is dropped. From then on, values that do not
    come before the last one that was kept are dropped at once.

    Attributes:
        size: The bytes that they take in memory.
    """

    def __init__(self, most: int, *, reverse: bool) -> None:
        self._most, self._reverse = most, reverse
        self._values: list[Any] = []
        self._positions: list[int] = []
        self._last: Any = None
        self.size = 0

    def add(self, values: list[Any], positions: Iterable[int]) -> None:
        """Add values in input order; for missing ones, zeros."""
        if self._last is not None:
            last = self._last
            before = (
                [value > last for value in values]
                if self._reverse
                else [value < last for value in values]
            )
            values, positions = list(compress(values, before)), compress(positions, before)
        self._values += values
        self._positions += positions
        self.size += _size(values)
        if len(self._values) > 2 * self._most:
            self.cut()

    def cut(self) -> None:
        """Keep the first values alone, in their order."""
        values, positions = self._values, self._positions
        order = sorted(range(len(values)), key=values.__getitem__, reverse=self._reverse)
        kept = order[: self._most]
        self._values = [values[at] for at in kept]
        self._positions = [positions[at] for at in kept]
        if len(kept) == self._most and kept:
            self._last = self._values[-1]
        self.size = _size(self._values)

    def positions(self) -> Iterator[int]:
        """Yield the positions of the first values, in their order."""
        self.cut()
        return iter(self._positions)

    def keys(self, *, missing: bool = False) -> Iterator[bytes]:
        """Yield the key of each value and its position."""
        for value, position in zip(self._values, self._positions, strict=True):
            key = ordered_key(None if missing else value, reverse=self._reverse)
            yield key + position.to_bytes(POSITION_BYTES)


def _size(values: list[Any]) -> int:
    texts = sum(map(len, values)) if values and type(values[0]) is str else 0
    return texts + _ENTRY_BYTES * len(values)
