"""CSV and TSV files."""

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from dagster_dataops.datasets.exporters.exporter import ExportRecords, Place
from dagster_dataops.errors import DefinitionError

_BUFFER: Final = 1 << 20
_BREAKS: Final = ",;|\t\r\n"  # may end a cell, in a program that expects another delimiter
_NUMBER: Final = r"[+-]\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?%?\s*"
_FORMULA: Final = "=+\\-@\uff1d\uff0b\uff0d\uff20"  # also in their full width
_BLANKS: Final = ("\t", "\r", "\n")  # which some programs leave out before a formula


class CsvTable:
    """Writes a header and one row per record, in UTF-8, by RFC 4180.

    A missing column and null are an empty cell. Objects and arrays are written as JSON, booleans as
    ``true`` and ``false``. The records are read twice if the columns are not given: first for the
    names of all columns, in the order of first occurrence.

    Args:
        columns: The columns to write, in order; ``None`` for all.
        delimiter: The character between cells.
        escape_formulas: Whether an apostrophe is put before what a spreadsheet takes for the
            beginning of a formula, in texts and in names of columns.
    """

    format = "csv"
    place: Place = "file"

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        delimiter: str = ",",
        *,
        escape_formulas: bool = False,
    ) -> None:
        if len(delimiter) != 1 or delimiter in '"\r\n':
            msg = f"delimiter is {delimiter!r}; it must be one character, such as ',' or '\\t'"
            raise DefinitionError(msg)
        if columns is not None and (isinstance(columns, str) or not columns):
            msg = f"columns is {columns!r}; it must be a list of names, or None for all columns"
            raise DefinitionError(msg)
        self._columns = None if columns is None else list(columns)
        self._delimiter = delimiter
        self._cell = _escaping(_formulas(delimiter)) if escape_formulas else _cell

    def write(self, records: ExportRecords, place: Path) -> None:
        """Write the table; without records and columns an empty file."""
        columns = self._columns if self._columns is not None else columns_of(records)
        with place.open("x", buffering=_BUFFER, encoding="utf-8", newline="") as file:
            rows = csv.writer(file, delimiter=self._delimiter, lineterminator="\r\n")
            if columns:
                rows.writerow(map(self._cell, columns))
            cell = self._cell
            rows.writerows([cell(record.get(name)) for name in columns] for record in records)


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


def _formulas(delimiter: str) -> re.Pattern[str]:
    """Return the pattern of what is before the first character of a formula.

    That is the beginning of a text, or what may end a cell, and then quotes and spaces. Numbers
    with a sign are no formulas.
    """
    breaks = re.escape(_BREAKS + delimiter)
    number = rf"{_NUMBER}(?:[{breaks}]|\Z)"
    return re.compile(rf"""(?:\A|[{breaks}])[ "']*+(?=[{_FORMULA}])(?!{number})""")


def _escaping(formulas: re.Pattern[str]) -> Callable[[Any], Any]:
    """Return the function that returns the cell of a value, with formulas escaped."""

    def escaped(value: Any) -> Any:
        cell = _cell(value)
        if not isinstance(cell, str):
            return cell
        text = formulas.sub(r"\g<0>'", cell)
        return f"'{text}" if text.startswith(_BLANKS) else text

    return escaped
