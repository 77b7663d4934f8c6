"""ColumnValues: the first records of an input, to find columns that a result passed through."""

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
_PLAIN: Final = frozenset({str, int})  # equal in Python exactly if equal in JSON
_INPUT_BYTES: Final = 1 << 20
_RESULT_BYTES: Final = 256 << 10
_NAMED_BY: Final = 160  # records, spread over a file, whose columns are collected
_PARTITIONS: Final = 3  # inspected partitions of an input
_MOST_KNOWN: Final = 4


class _Known(NamedTuple):
    """The columns and the first records of a result."""

    columns: tuple[str, ...]
    records: list[Record]


_NOTHING: Final = _Known((), [])
# By content digest: the next step in this process reads the result of the step before it.
_known: OrderedDict[str, _Known] = OrderedDict()


@dataclass(frozen=True)
class ColumnValues:
    """The first records of one input.

    Attributes:
        columns: All columns that were found, in the order of first occurrence.
        records: The first records.
        whole: Whether these are all records.
    """

    columns: dict[str, None]
    records: list[Record]
    whole: bool
    _seen: dict[str, set[object]] = field(default_factory=dict)

    def seen(self, column: str) -> set[object]:
        """Return the values of a column as a set, each in the form of `comparable`."""
        if column not in self._seen:
            self._seen[column] = set(map(comparable, _given(self.records, column)))
        return self._seen[column]

    def agrees(self, column: str, records: Sequence[Record], name: str) -> bool:
        """Return whether all values of ``name`` in ``records`` are in ``column`` of this input."""
        given = list(_given(records, name))
        if _same(given, list(islice(_given(self.records, column), len(given)))):
            return bool(given)  # the usual case: equal row by row, without the set
        known = self.seen(column)
        return bool(given) and all(comparable(value) in known for value in given)


def _given(records: Iterable[Record], column: str) -> Iterator[JsonValue]:
    return (record[column] for record in records if column in record)


def _same(some: list[JsonValue], others: list[JsonValue]) -> bool:
    if _PLAIN.issuperset(map(type, some)) and _PLAIN.issuperset(map(type, others)):
        return some == others
    return list(map(comparable, some)) == list(map(comparable, others))


def remember(result: JsonlDataset, columns: Iterable[str], records: list[Record]) -> None:
    """Keep the columns and the first records of a result for `values_of`."""
    if result.fingerprint is not None:
        _known[result.fingerprint] = _Known(tuple(columns), records)
        _known.move_to_end(result.fingerprint)
        if len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)


def values_of(parts: Sequence[JsonlDataset], count: int = INPUT_RECORDS) -> ColumnValues:
    """Return the values of one input from the first ``count`` records of each of its partitions."""
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
        for names in dict.fromkeys(map(tuple, first)):  # most records have the same columns
            columns.update(dict.fromkeys(names))
        if not whole:
            columns.update(dict.fromkeys(known.columns or _columns_all_over(part)))
    return ColumnValues(columns, records, whole)


def _columns_all_over(part: JsonlDataset) -> list[str]:
    return [name for record in spread_sample(part, _NAMED_BY).records for name in record]


def inputs_to_see(result: JsonlDataset, parts: Sequence[JsonlDataset]) -> int:
    """Return the number of input records from which the first records of a result should come.

    The order is kept. If no record was dropped, the number is the same. Otherwise it is twice the
    number that an even drop rate predicts.
    """
    rows_in = sum(part.rows or 0 for part in parts)
    if not rows_in or not result.rows:
        return INPUT_RECORDS
    if rows_in == result.rows:
        return _RESULT_RECORDS
    expected = 2 * _RESULT_RECORDS * rows_in // result.rows
    return max(_RESULT_RECORDS, min(expected, INPUT_RECORDS))


def compared_records(result: JsonlDataset, parts: Sequence[JsonlDataset]) -> list[Record]:
    """Return as many first records of a result as should come from the first 400 input records.

    Example: if a result keeps one record in a hundred, its first 100 records come from the first
    10,000 of the input, most of which were not inspected; so only its first 3 are compared.
    """
    rows_in = sum(part.rows or 0 for part in parts)
    count = _RESULT_RECORDS
    if rows_in > INPUT_RECORDS and result.rows is not None:
        expected = INPUT_RECORDS * result.rows // (2 * rows_in)
        count = max(_FEWEST, min(count, expected))
    return first_records(result, count, _RESULT_BYTES)


def comparable(value: JsonValue) -> object:
    """Return a hashable form of a value; two forms are equal exactly if the JSON is equal."""
    kind = type(value)
    return value if kind in _PLAIN else orjson.dumps(value)
