"""`Distribution`: the numbers of a column, or the lengths of its texts, as a picture."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

from dagster_dataops.pipelines.reporting.excerpts import excerpt
from dagster_dataops.records import text_of

_BINS: Final = 24
MOST_COLUMNS: Final = 40
_MOST_VALUES: Final = 1000  # different values that are counted
_SHOWN_VALUES: Final = 12


class Bar(NamedTuple):
    """A bar of a histogram: its limits, and the number of values between them."""

    low: float
    high: float
    number: int


@dataclass
class Distribution:
    """Numbers, of which three digits are kept."""

    count: int = 0
    total: float = 0.0
    least: float = math.inf
    most: float = -math.inf
    tally: Counter[float] = field(default_factory=Counter)

    def add(self, value: float) -> None:
        """Count a number."""
        self.count += 1
        self.total += value
        self.least, self.most = min(self.least, value), max(self.most, value)
        exact = -1000 < value < 1000 and value == int(value)
        self.tally[value if exact else float(f"{value:.3g}")] += 1

    @property
    def mean(self) -> float:
        """The mean."""
        return self.total / self.count

    def quantile(self, part: float) -> float:
        """Return the number, with three digits, that ``part`` of the numbers are at most."""
        left = part * self.count
        for value in sorted(self.tally):
            left -= self.tally[value]
            if left <= 0:
                return min(max(value, self.least), self.most)
        return self.most

    def combined(self, other: "Distribution") -> "Distribution":
        """Return the distribution of the numbers of both."""
        return Distribution(
            self.count + other.count,
            self.total + other.total,
            min(self.least, other.least),
            max(self.most, other.most),
            self.tally + other.tally,
        )

    def edges(self) -> list[float]:
        """Return the limits of the bars, powers if the numbers are spread over several of them."""
        whole = all(value == int(value) for value in self.tally)
        return _edges(self.least, self.most, self.quantile(0.5), whole=whole)

    def bars(self, edges: Sequence[float]) -> list[Bar]:
        """Return a histogram with these limits."""
        counts = [0] * (len(edges) - 1)
        at = 0
        for value in sorted(self.tally):
            while at + 1 < len(counts) and value >= edges[at + 1]:
                at += 1
            counts[at] += self.tally[value]
        return [Bar(*limits, count) for limits, count in zip(pairwise(edges), counts, strict=True)]


def _edges(low: float, high: float, middle: float, *, whole: bool) -> list[float]:
    if low == high:
        return [low, low + 1]
    if whole and high - low < _BINS:
        return [low + step for step in range(int(high - low) + 2)]
    if low >= 0 and middle > 0 and high > 20 * middle:  # most are near the beginning
        first = max(low, middle / 64, 1 if whole else 0)
        ratio = (high / first) ** (1 / _BINS)
        powers = [first * ratio**step for step in range(1, _BINS)]
        inner = sorted({float(round(edge)) for edge in powers} if whole else powers)
        return [low, *(edge for edge in inner if low < edge < high), math.nextafter(high, math.inf)]
    step = (high - low) / _BINS
    if whole:
        step = math.ceil(step)
        number = math.ceil((high - low + 1) / step)
        return [low + step * at for at in range(number + 1)]
    return [*(low + step * at for at in range(_BINS)), math.nextafter(high, math.inf)]


@dataclass
class ColumnFacts:
    """Statistics of the values of a column.

    Attributes:
        name: The column.
        there: The number of records that have it.
        empty: The number of values that are null.
        numbers: The numbers.
        lengths: The lengths of texts, lists and objects, by ``characters`` or ``items``.
        values: How often short texts and booleans occur; empty if there are too many.
    """

    name: str
    there: int = 0
    empty: int = 0
    numbers: Distribution = field(default_factory=Distribution)
    lengths: dict[str, Distribution] = field(default_factory=dict)
    values: Counter[str] = field(default_factory=Counter)
    many: bool = False

    def add(self, value: object) -> None:
        """Count a value."""
        self.there += 1
        if value is None:
            self.empty += 1
        elif isinstance(value, bool):
            self._value(str(value).lower())
        elif isinstance(value, (int, float)):
            if math.isfinite(value):
                self.numbers.add(value)
        elif isinstance(value, str):
            self._length("characters", len(value))
            self._value(value)
        elif isinstance(value, (list, dict)):
            self._length("items", len(value))

    def _length(self, unit: str, number: int) -> None:
        self.lengths.setdefault(unit, Distribution()).add(number)

    def _value(self, text: str) -> None:
        if not self.many:
            self.values[excerpt(text, 60)] += 1
            self.many = len(self.values) > _MOST_VALUES
            if self.many:
                self.values.clear()

    @property
    def frequent(self) -> list[tuple[str, int]]:
        """The most frequent values, if values occur more than once."""
        number = sum(self.values.values())
        if self.many or not number or len(self.values) > max(3, number // 4):
            return []
        return self.values.most_common(_SHOWN_VALUES)


def add_record(columns: dict[str, ColumnFacts], record: Mapping[str, Any]) -> None:
    """Count the values of a record in the facts about its columns."""
    for name, value in record.items():
        if name in columns or len(columns) < MOST_COLUMNS:
            columns.setdefault(name, ColumnFacts(text_of(name))).add(value)


def columns_of(records: Iterable[Mapping[str, Any]]) -> dict[str, ColumnFacts]:
    """Return the facts about the columns of records."""
    columns: dict[str, ColumnFacts] = {}
    for record in records:
        add_record(columns, record)
    return columns
