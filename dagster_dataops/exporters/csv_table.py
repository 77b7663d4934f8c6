"""CSV and TSV files."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from dagster_dataops.errors import DefinitionError
from dagster_dataops.exporters.exporter import ExportRecords, Place

_BUFFER: Final = 1 << 20


class CsvTable:
    """Writes a header and one row per record, in UTF-8, by RFC 4180.

    A missing column and null are an empty cell. Objects and arrays are written as JSON, booleans as
    ``true`` and ``false``. The records are read twice if the columns are not given: first for the
    names of all columns, in the order of first occurrence.

    Args:
        columns: The columns to write, in order; ``None`` for all.
        delimiter: The character between cells.
    """

    format = "csv"
    place: Place = "file"

    def __init__(self, columns: Sequence[str] | None = None, delimiter: str = ",") -> None:
        if len(delimiter) != 1 or delimiter in '"\r\n':
            msg = f"delimiter is {delimiter!r}; it must be one character, such as ',' or '\\t'"
            raise DefinitionError(msg)
        if columns is not None and (isinstance(columns, str) or not columns):
            msg = f"columns is {columns!r}; it must be a list of names, or None for all columns"
            raise DefinitionError(msg)
        self._columns = None if columns is None else list(columns)
        self._delimiter = delimiter

    def write(self, records: ExportRecords, place: Path) -> None:
        """Write the table; without records and columns an empty file."""
        columns = self._columns if self._columns is not None else columns_of(records)
        with place.open("x", buffering=_BUFFER, encoding="utf-8", newline="") as file:
            rows = csv.writer(file, delimiter=self._delimiter, lineterminator="\r\n")
            if columns:
                rows.writerow(columns)
            rows.writerows([_cell(record.get(name)) for name in columns] for record in records)


def columns_of(records: ExportRecords) -> list[str]:
    """Return the columns of all records, in the order of first occurrence."""
    columns: dict[str, None] = {}
    last: list[str] = []
    for record in records:
        names = list(record)
        if names != last:
            columns.update(dict.fromkeys(names))
            last = names
    return list(columns)


def _cell(value: Any) -> Any:
    kind = type(value)
    if kind in {str, int, float} or value is None:
        return value
    return orjson.dumps(value).decode()
