"""ColumnValues: what an input's first records hold, to see which columns are still the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.sampling import first_records, spread_sample
from dagster_dataops.records import JsonValue, Record

INPUT_RECORDS: Final = 400
_RESULT_RECORDS: Final = 100
_FEWEST: Final = 3
_INPUT_BYTES: Final = 1 << 20
_RESULT_BYTES: Final = 256 << 10
_NAMED_BY: Final = 160  # records from all over a file whose columns count
_PARTITIONS: Final = 3  # of an input, that are looked at


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """What the first records of one input hold.

    Attributes:
        columns: Every column that was seen, in the order in which it was first.
        values: By column, the JSON of each value that was seen.
        whole: Whether all records were looked at.
    """

    columns: dict[str, None]
    values: dict[str, set[object]]
    whole: bool

    def agrees(self, column: str, records: Sequence[Record], name: str) -> bool:
        """Whether all that ``records`` hold as ``name`` was seen here in ``column``."""
        known = self.values.get(column, set())
        given = [record[name] for record in records if name in record]
        return bool(given) and all(comparable(value) in known for value in given)


def values_of(parts: Sequence[JsonlDataset]) -> ColumnValues:
    """Return the values of one input, whose partitions are ``parts``."""
    columns: dict[str, None] = {}
    values: dict[str, set[object]] = {}
    whole = len(parts) <= _PARTITIONS
    for part in parts[:_PARTITIONS]:
        records = first_records(part, INPUT_RECORDS, _INPUT_BYTES)
        whole = whole and part.rows is not None and len(records) == part.rows
        for record in records:
            columns.update(dict.fromkeys(record))
        for name in columns:
            seen = (record[name] for record in records if name in record)
            values.setdefault(name, set()).update(map(comparable, seen))
        if not whole:
            for record in spread_sample(part, _NAMED_BY).records:
                columns.update(dict.fromkeys(record))
    return ColumnValues(columns, values, whole)


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
    return value if kind is str or kind is int else orjson.dumps(value)
