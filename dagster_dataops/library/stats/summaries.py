"""``stats.Summary``: sum up columns of a dataset in one record."""

from collections.abc import Iterator, Sequence
from typing import Any

from dagster_dataops.data import data_register
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.stats.value_summary import ValueSummary
from dagster_dataops.operators.options.ranges import AtLeastZero, PositiveInt
from dagster_dataops.records import Record

stats: Any = data_register.new_group("stats")


class Summary(stats):
    """Sum up columns of all records in one record.

    ``keys`` are columns or selectors, such as ``["stats.num_words", "lang"]``; several selected
    elements count one by one. By default, they are all signals in ``stats_key`` and the column
    ``reason_key``, if a record has it.

    Writes one record of ``records`` (their number) and ``columns``, by key: ``count``,
    ``missing`` (or ``null``), for numbers ``sum``, ``mean``, ``std`` (of a sample), ``min``,
    ``max``, ``percentiles`` (1, 5, 25, 50, 75, 95, 99) and ``histogram`` (``edges`` of ``bins``
    bins of equal width, and ``counts``), and ``top``, the ``top`` most frequent values. Percentiles
    and histograms of more than 10,000 numbers are estimated by a t-digest. Of columns with more
    than 20,000 different values, ``top_error`` is the number by which counts in ``top`` may be too
    small. Memory is limited; long texts count by their first 100 characters.

    Source: the ``Analyzer`` of Data-Juicer, the stats blocks of datatrove.

    Args:
        keys: Columns or selectors; ``None`` for all signals and the reason.
        stats_key: Column of the signals, a dict.
        reason_key: Column of the reason.
        bins: Number of bins of a histogram.
        top: Number of most frequent values.
    """

    new_records = True

    def __init__(
        self,
        keys: Sequence[str] | None = None,
        *,
        stats_key: str = "stats",
        reason_key: str = "drop_reason",
        bins: PositiveInt = 20,
        top: AtLeastZero = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._keys = None if keys is None else {key: FieldKey(key) for key in keys}
        self._stats_key, self._reason_key = stats_key, reason_key
        self._bins, self._top = bins, top

    def forward_batch_input(self, records: Iterator[Record]) -> list[Record]:
        summaries: dict[str, ValueSummary] = {}
        number = 0
        for number, record in enumerate(records, 1):  # noqa: B007 - it is the number of records
            for key, value in self._values(record):
                if key not in summaries:
                    summaries[key] = ValueSummary(self._bins, self._top)
                summaries[key].add(value)
        if number and not summaries and self._keys is None:
            msg = (
                f"none of {counted(number, 'records')} has signals in {self._stats_key!r} or a "
                f"reason in {self._reason_key!r}; name the columns to describe in keys, or put "
                "filters with mode='tag' before"
            )
            raise UnfitRecordError(msg)
        columns: Any = {key: summary.result() for key, summary in summaries.items()}
        return [{"records": number, "columns": columns}]

    def _values(self, record: Record) -> Iterator[tuple[str, Any]]:
        """Yield the keys and values to count; ``None`` for a missing one."""
        if self._keys is not None:
            for key, column in self._keys.items():
                for value in column.present(record) or [None]:
                    yield key, value
            return
        signals = record.get(self._stats_key)
        if isinstance(signals, dict):
            yield from ((f"{self._stats_key}.{name}", value) for name, value in signals.items())
        if self._reason_key in record:
            yield self._reason_key, record[self._reason_key]
