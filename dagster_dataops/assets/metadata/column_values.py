"""ColumnValues: what an input's first records hold, to see which columns are still the same."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

import orjson

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.record_samples import first_records, spread_sample
from dagster_dataops.records import JsonValue, Record

INPUT_RECORDS: Final = 400
_RESULT_RECORDS: Final = 100
_FEWEST: Final = 3
_PLAIN: Final = frozenset({str, int})  # Python finds them equal exactly where JSON is
_INPUT_BYTES: Final = 1 << 20
_RESULT_BYTES: Final = 256 << 10
_NAMED_BY: Final = 160  # records from all over a file whose columns count
_PARTITIONS: Final = 3  # of an input, that are looked at
_MOST_KNOWN: Final = 4


class _Known(NamedTuple):
    """What was seen of a result: its columns, and its first records."""

    columns: tuple[str, ...]
    records: list[Record]


_NOTHING: Final = _Known((), [])
# By content: what a step has just written is what the next one reads.
_known: OrderedDict[str, _Known] = OrderedDict()


@dataclass(frozen=True)
class ColumnValues:
    """What the first records of one input hold.

    Attributes:
        columns: Every column that was seen, in the order in which it was first.
        records: The first records.
        whole: Whether all records were looked at.
    """

    columns: dict[str, None]
    records: list[Record]
    whole: bool
    _seen: dict[str, set[object]] = field(default_factory=dict)

    def seen(self, column: str) -> set[object]:
        """Return what stands for each value that was seen in a column: see `comparable`."""
        if column not in self._seen:
            self._seen[column] = set(map(comparable, _given(self.records, column)))
        return self._seen[column]

    def agrees(self, column: str, records: Sequence[Record], name: str) -> bool:
        """Whether all that ``records`` hold as ``name`` was seen here in ``column``."""
        given = list(_given(records, name))
        if _same(given, list(islice(_given(self.records, column), len(given)))):
            return bool(given)  # row by row the same, as mostly: no need to know all values
        known = self.seen(column)
        return bool(given) and all(comparable(value) in known for value in given)


def _given(records: Iterable[Record], column: str) -> Iterator[JsonValue]:
    return (record[column] for record in records if column in record)


def _same(some: list[JsonValue], others: list[JsonValue]) -> bool:
    if _PLAIN.issuperset(map(type, some)) and _PLAIN.issuperset(map(type, others)):
        return some == others
    return list(map(comparable, some)) == list(map(comparable, others))


def remember(result: JsonlDataset, columns: Iterable[str], records: list[Record]) -> None:
    """Take note of all columns of a result and its first records, for `values_of`."""
    if result.fingerprint is not None:
        _known[result.fingerprint] = _Known(tuple(columns), records)
        _known.move_to_end(result.fingerprint)
        if len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)


def values_of(parts: Sequence[JsonlDataset], count: int = INPUT_RECORDS) -> ColumnValues:
    """Return the values of one input, whose partitions are ``parts``, by ``count`` records each."""
    columns: dict[str, None] = {}
    records: list[Record] = []
    whole = len(parts) <= _PARTITIONS
    for part in parts[:_PARTITIONS]:
        known = _known.get(part.fingerprint or "", _NOTHING)
        first = known.records[:count]
        if len(first) < count:
            first = first_records(part, count, _INPUT_BYTES)
        records += first
        whole = whole and part.rows is not None and len(first) == part.rows
        for names in dict.fromkeys(map(tuple, first)):  # few records differ in them
            columns.update(dict.fromkeys(names))
        if not whole:
            columns.update(dict.fromkeys(known.columns or _columns_all_over(part)))
    return ColumnValues(columns, records, whole)


def _columns_all_over(part: JsonlDataset) -> list[str]:
    return [name for record in spread_sample(part, _NAMED_BY).records for name in record]


def inputs_to_see(result: JsonlDataset, parts: Sequence[JsonlDataset]) -> int:
    """Return how many of the first records of an input those of a result should come from.

    With their order kept, that is: as many if all were kept, else twice as many as they would be,
    were as many dropped everywhere.
    """
    rows_in = sum(part.rows or 0 for part in parts)
    if not rows_in or not result.rows:
        return INPUT_RECORDS
    if rows_in == result.rows:
        return _RESULT_RECORDS
    expected = 2 * _RESULT_RECORDS * rows_in // result.rows
    return max(_RESULT_RECORDS, min(expected, INPUT_RECORDS))


def compared_records(result: JsonlDataset, parts: Sequence[JsonlDataset]) -> list[Record]:
    """Return the first records of a result: as many as should come from the inputs' first 400.

    Of a result that holds a hundredth of its input's records, the first 100 come of the input's
    first 10,000: these were not looked at.
    """
    rows_in = sum(part.rows or 0 for part in parts)
    count = _RESULT_RECORDS
    if rows_in > INPUT_RECORDS and result.rows is not None:
        expected = INPUT_RECORDS * result.rows // (2 * rows_in)
        count = max(_FEWEST, min(count, expected))
    return first_records(result, count, _RESULT_BYTES)


def comparable(value: JsonValue) -> object:
    """Return what stands for a value in a set: equal exactly for equal JSON."""
    kind = type(value)
    return value if kind in _PLAIN else orjson.dumps(value)
