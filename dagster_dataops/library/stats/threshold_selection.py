"""``stats.Threshold``: keep records by where a number lies in its distribution."""

import math
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.stats.number_summary import NumberSummary
from dagster_dataops.library.stats.summaries import stats
from dagster_dataops.operators.options.ranges import AtLeastZeroFloat, Percentile
from dagster_dataops.records import Record

_AT_ONCE: Final = 65_536  # numbers in memory


class Threshold(stats):
    """Keep records whose number lies between two percentiles, or near the mean.

    ``key`` is a column or a selector of one number, such as ``stats.num_words``. With
    ``min_percentile`` and ``max_percentile`` (0 to 100, inclusive), numbers between these
    percentiles of all records are kept; with ``sigma``, those within so many standard deviations
    (of a sample) of the mean; with both, those that fit both. A record without a number is dropped,
    unless ``keep_missing``. The numbers of all records are read first; they take 8 bytes each on
    disk. Percentiles of more than 10,000 numbers are estimated by a t-digest.

    Source: the recipes of Data-Juicer that take thresholds three standard deviations from the mean.

    Args:
        key: A column or a selector of one number.
        min_percentile: Percentile of the smallest number to keep, 0 to 100.
        max_percentile: Percentile of the largest number to keep, 0 to 100.
        sigma: Largest distance from the mean to keep, in standard deviations.
        keep_missing: Whether to keep records without a number.
    """

    def __init__(
        self,
        key: str,
        *,
        min_percentile: Percentile | None = None,
        max_percentile: Percentile | None = None,
        sigma: AtLeastZeroFloat | None = None,
        keep_missing: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if min_percentile is max_percentile is sigma is None:
            msg = "give min_percentile, max_percentile or sigma"
            raise DefinitionError(msg)
        self._column = FieldKey(key).checked_single("give the key of one number")
        self._percentiles = min_percentile, max_percentile
        self._sigma, self._missing = sigma, keep_missing

    def sketch(self, record: Record) -> float | None:
        value = self._column.value(record)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            msg = f"The value of key {self._column.name!r} is no number but {value!r}"[:200]
            raise TypeError(msg)
        return float(value)

    def keep(self, sketches: Iterator[float | None], scratch: Path) -> Iterator[bool]:
        numbers = scratch / "numbers"
        least, most = self._limits(sketches, numbers)
        for number in _read(numbers):
            yield self._missing if math.isnan(number) else least <= number <= most

    def _limits(self, sketches: Iterator[float | None], path: Path) -> tuple[float, float]:
        """Write the numbers to a file; return the smallest and the largest number to keep."""
        numbers = NumberSummary()
        with path.open("wb") as file:
            waiting = array("d")
            for sketch in sketches:
                waiting.append(math.nan if sketch is None else sketch)
                if sketch is not None:
                    numbers.add(sketch)
                if len(waiting) == _AT_ONCE:
                    waiting.tofile(file)
                    waiting = array("d")
            waiting.tofile(file)
        return self._between(numbers) if numbers.count else (0, 0)

    def _between(self, numbers: NumberSummary) -> tuple[float, float]:
        low, high = self._percentiles
        least = -math.inf if low is None else numbers.quantile(low / 100)
        most = math.inf if high is None else numbers.quantile(high / 100)
        if self._sigma is not None:
            distance = self._sigma * numbers.deviation()
            least, most = max(least, numbers.mean - distance), min(most, numbers.mean + distance)
        return least, most


def _read(path: Path) -> Iterator[float]:
    with path.open("rb") as file:
        while data := file.read(8 * _AT_ONCE):
            yield from array("d", data)
