"""Histograms as pictures: bars with their places, and the numbers beside them."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from dagster_dataops.foundation.quantities import percentage
from dagster_dataops.pipelines.view.shown.numbers import Bar, ColumnFacts, Distribution

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


class Histogram(NamedTuple):
    """A histogram.

    Attributes:
        bars: Its bars.
        ticks: Place and text of the marks below.
        most: The number of the highest bar.
        facts: Names and texts of the numbers beside it.
    """

    bars: list[ShownBar]
    ticks: list[tuple[float, str]]
    most: int
    facts: list[tuple[str, str]]


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
    bars = numbers.bars()
    most = max(bar.number for bar in bars)
    wide = WIDTH / len(bars)
    shown = []
    for at, bar in enumerate(bars):
        tall = max(_LEAST, HEIGHT * bar.number / most) if bar.number else 0
        place = (at * wide, HEIGHT - tall, wide - 1.5, tall)
        x, y, width, height = (round(one, 1) for one in place)
        shown.append(ShownBar(x, y, width, height, _said(bar, numbers.count)))
    step = max(1, len(bars) // 6)
    ticks = [
        (round(at * wide, 1), text_of_number(bars[at].low)) for at in range(0, len(bars), step)
    ]
    facts = [
        ("number", f"{numbers.count:,}"),
        ("mean", text_of_number(numbers.mean)),
        ("least", text_of_number(numbers.least)),
        ("median", text_of_number(numbers.quantile(0.5))),
        ("95 %", text_of_number(numbers.quantile(0.95))),
        ("greatest", text_of_number(numbers.most)),
    ]
    return Histogram(shown, ticks, most, facts)


def _said(bar: Bar, total: int) -> str:
    low, high = text_of_number(bar.low), text_of_number(bar.high)
    return f"{bar.number:,} ({percentage(bar.number / total)}) from {low} to below {high}"


def text_of_number(value: float) -> str:
    """Return a number as text, with about four digits; whole ones with all."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
