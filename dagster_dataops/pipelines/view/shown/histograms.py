"""Histograms as pictures: bars with their places, and the numbers beside them."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from dagster_dataops.foundation.quantities import percentage
from dagster_dataops.pipelines.reporting.distributions import Bar, ColumnFacts, Distribution

WIDTH: Final = 560
HEIGHT: Final = 150
_LEAST: Final = 1.5  # pixels of a bar that is not empty


class ShownBar(NamedTuple):
    """A bar: its place in pixels, and what it says."""

    x: float
    y: float
    width: float
    height: float
    said: str
    kind: str = "kept"


class Histogram(NamedTuple):
    """A histogram.

    Attributes:
        bars: Its bars.
        ticks: Place and text of the marks below.
        most: The number of the highest bar.
        facts: Names and texts of the numbers beside it; of a pair those before and after.
    """

    bars: list[ShownBar]
    ticks: list[tuple[float, str]]
    most: int
    facts: list[tuple[str, ...]]


class ShownColumn(NamedTuple):
    """A column.

    Attributes:
        name: Its name.
        said: In how many records it is there, and how many are null.
        histograms: A title and a histogram for numbers, and for lengths.
        values: The most frequent values: text, number, and width in percent.
    """

    name: str
    said: str
    histograms: list[tuple[str, Histogram]]
    values: list[tuple[str, int, float]]


def shown_columns(columns: Mapping[str, ColumnFacts]) -> list[ShownColumn]:
    """Return the pictures of columns."""
    return [_column(one) for one in columns.values()]


def _column(facts: ColumnFacts) -> ShownColumn:
    histograms = []
    if facts.numbers.count:
        histograms.append(("Values", histogram(facts.numbers)))
    for unit, lengths in facts.lengths.items():
        if lengths.least < lengths.most or not facts.frequent:
            histograms.append((f"Lengths in {unit}", histogram(lengths)))
    frequent = facts.frequent
    most = frequent[0][1] if frequent else 1
    values = [(text, number, 100 * number / most) for text, number in frequent]
    empty = f", {facts.empty:,} null" if facts.empty else ""
    return ShownColumn(facts.name, f"in {facts.there:,} records{empty}", histograms, values)


def histogram(numbers: Distribution) -> Histogram:
    """Return the picture of a distribution, which is not empty."""
    edges = numbers.edges()
    most = max(bar.number for bar in numbers.bars(edges))
    return Histogram(_bars(numbers, edges, most), _ticks(edges), most, _facts(numbers))


def paired_histogram(before: Distribution, after: Distribution) -> Histogram:
    """Return the picture of two distributions with the same limits; one of them may be empty."""
    edges = before.combined(after).edges()
    most = max(bar.number for one in (before, after) for bar in one.bars(edges))
    bars = [
        bar._replace(
            x=round(bar.x + at * bar.width / 2, 1), width=round(bar.width / 2, 1), kind=kind
        )
        for at, (kind, one) in enumerate((("kept", before), ("after", after)))
        for bar in _bars(one, edges, most)
    ]
    facts = zip(_facts(before), _facts(after), strict=True)
    rows: list[tuple[str, ...]] = [(first[0], first[1], second[1]) for first, second in facts]
    return Histogram(bars, _ticks(edges), most, rows)


def _bars(numbers: Distribution, edges: Sequence[float], most: int) -> list[ShownBar]:
    bars = numbers.bars(edges)
    wide = WIDTH / len(bars)
    shown = []
    for at, bar in enumerate(bars):
        tall = max(_LEAST, HEIGHT * bar.number / most) if bar.number else 0
        place = (at * wide, HEIGHT - tall, wide - 1.5, tall)
        x, y, width, height = (round(one, 1) for one in place)
        shown.append(ShownBar(x, y, width, height, _said(bar, numbers.count)))
    return shown


def _ticks(edges: Sequence[float]) -> list[tuple[float, str]]:
    number = len(edges) - 1
    chosen = range(0, number, max(1, number // 6))
    return [(round(at * WIDTH / number, 1), text_of_number(edges[at])) for at in chosen]


def _facts(numbers: Distribution) -> list[tuple[str, ...]]:
    names = ("number", "mean", "least", "median", "95 %", "greatest")
    if not numbers.count:
        return [(name, "") for name in names]
    values = (numbers.mean, numbers.least, numbers.quantile(0.5), numbers.quantile(0.95))
    texts = map(text_of_number, (*values, numbers.most))
    return list(zip(names, (f"{numbers.count:,}", *texts), strict=True))


def paired_histograms(
    before: ColumnFacts | None, after: ColumnFacts | None
) -> list[tuple[str, Histogram]]:
    """Return the pictures of a column before and after a node, with their titles."""
    sides = [one or ColumnFacts("") for one in (before, after)]
    found = []
    if sides[0].numbers.count or sides[1].numbers.count:
        found.append(("Values", paired_histogram(sides[0].numbers, sides[1].numbers)))
    for unit in dict.fromkeys([*sides[0].lengths, *sides[1].lengths]):
        lengths = [one.lengths.get(unit, Distribution()) for one in sides]
        found.append((f"Lengths in {unit}", paired_histogram(lengths[0], lengths[1])))
    return found


def _said(bar: Bar, total: int) -> str:
    low, high = text_of_number(bar.low), text_of_number(bar.high)
    return f"{bar.number:,} ({percentage(bar.number / max(total, 1))}) from {low} to below {high}"


def text_of_number(value: float) -> str:
    """Return a number as text, with about four digits; whole ones with all."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
