"""ColumnValues: the values in the first records of an input, to compare those of a result with."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.record_samples import first_records, spread_sample
from dagster_dataops.records import JsonValue, Record, compact_copy

Values: TypeAlias = dict[str, set[object]]
"""The values by column, in the order of first occurrence, as `comparable` returns them."""

INPUT_RECORDS: Final = 400
_RESULT_RECORDS: Final = 100
_FEWEST: Final = 3
_INPUT_BYTES: Final = 1 << 20
_RESULT_BYTES: Final = 256 << 10
_NAMED_BY: Final = 160  # records, spread over a file, whose columns are collected
_PARTITIONS: Final = 3  # inspected partitions of an input
_PLAIN: Final = frozenset({str, int})  # equal in Python exactly if equal in JSON


@dataclass(frozen=True)
class ColumnValues:
    """The values in the first records of one input.

    Attributes:
        values: The values of all columns that were found; none for one that only later records
            have.
        whole: Whether the first records are all records.
    """

    values: Values
    whole: bool


def values_of(parts: Sequence[JsonlDataset], count: int = INPUT_RECORDS) -> ColumnValues:
    """Return the values of one input from the first ``count`` records of each of its partitions."""
    values: Values = {}
    whole = len(parts) <= _PARTITIONS
    for part in parts[:_PARTITIONS]:
        first = first_records(part, count, _INPUT_BYTES)
        _collect(first, values)
        if part.rows is None or len(first) != part.rows:
            whole = False
            for record in spread_sample(part, _NAMED_BY).records:
                for name in record:
                    values.setdefault(name, set())
    return ColumnValues(values, whole)


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


def compared_values(result: JsonlDataset, parts: Sequence[JsonlDataset]) -> Values:
    """Return the values in the first records of a result, to be found in those of its inputs.

    They are of as many records as should come from the first 400 input records. Example: if a
    result keeps one record in a hundred, its first 100 records come from the first 10,000 of the
    input, most of which were not inspected; so only its first 3 are compared.
    """
    rows_in = sum(part.rows or 0 for part in parts)
    count = _RESULT_RECORDS
    if rows_in > INPUT_RECORDS and result.rows is not None:
        expected = INPUT_RECORDS * result.rows // (2 * rows_in)
        count = max(_FEWEST, min(count, expected))
    values: Values = {}
    _collect(first_records(result, count, _RESULT_BYTES), values)
    return values


def _collect(records: Iterable[Record], values: Values) -> None:
    for record in records:
        for name, value in record.items():
            values.setdefault(name, set()).add(comparable(value))


def comparable(value: JsonValue) -> object:
    """Return a hashable form of a value; two forms are equal exactly if the JSON is equal."""
    return value if type(value) in _PLAIN else compact_copy(orjson.dumps(value))
