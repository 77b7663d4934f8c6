"""`ValueSummary`: statistics of the values of one column."""

import math
from collections import Counter
from typing import Any, Final

from dagster_dataops.library.stats.number_summary import NumberSummary

_PERCENTILES: Final = (1, 5, 25, 50, 75, 95, 99)
_MOST_DISTINCT: Final = 10_000
_LONGEST_VALUE: Final = 100  # characters


class ValueSummary:
    """Counts the values of a column; numbers are also measured, in a histogram of ``bins`` bins.

    The summary has the ``top`` most frequent values.
    """

    def __init__(self, bins: int, top: int) -> None:
        self._bins, self._top = bins, top
        self._missing = self._count = 0
        self._sum: float = 0
        self._least, self._most = math.inf, -math.inf
        self._numbers = NumberSummary()
        self._values: Counter[Any] = Counter()
        self._lost = 0  # the largest count of a value that was forgotten

    def add(self, value: Any) -> None:
        """Add a value; ``None`` counts as missing."""
        if value is None:
            self._missing += 1
            return
        self._count += 1
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            self._add_number(value)
            self._add_value(value)
        else:
            self._add_value(value if isinstance(value, bool) else _shown(value))

    def _add_number(self, number: float) -> None:
        if not math.isfinite(number):
            return
        self._sum += number
        self._least, self._most = min(self._least, number), max(self._most, number)
        self._numbers.add(float(number))

    def _add_value(self, value: Any) -> None:
        self._values[type(value) is bool, value] += 1
        if len(self._values) > 2 * _MOST_DISTINCT:
            ordered = self._values.most_common()
            self._lost = max(self._lost, ordered[_MOST_DISTINCT][1])
            self._values = Counter(dict(ordered[:_MOST_DISTINCT]))

    def result(self) -> dict[str, Any]:
        """Return the summary as a JSON object."""
        summary: dict[str, Any] = {"count": self._count, "missing": self._missing}
        numbers = self._numbers
        if numbers.count:
            summary |= {
                "sum": _finite(self._sum),
                "mean": _finite(numbers.mean),
                "std": _finite(numbers.deviation()),
                "min": self._least,
                "max": self._most,
                "percentiles": {str(p): _finite(numbers.quantile(p / 100)) for p in _PERCENTILES},
                "histogram": self._histogram(),
            }
        ordered = self._values.most_common(self._top)
        summary["top"] = [{"value": value, "count": count} for (_, value), count in ordered]
        if self._lost:
            summary["top_error"] = self._lost
        return summary

    def _histogram(self) -> dict[str, list[float]]:
        width = (self._most - self._least) / self._bins
        if not width or not math.isfinite(width):
            return {"edges": [self._least, self._most], "counts": [self._numbers.count]}
        counts = [0.0] * self._bins
        for mean, weight in self._numbers.centroids():
            counts[max(0, min(self._bins - 1, int((mean - self._least) / width)))] += weight
        edges = [self._least + width * number for number in range(self._bins)]
        return {"edges": [*edges, self._most], "counts": [round(count) for count in counts]}


def _finite(number: float) -> float | None:
    """Return a number; ``None`` if numbers are so large that it cannot be calculated."""
    return number if math.isfinite(number) else None


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
