"""``export.Parquet``, ``Csv`` and ``Jsonl``: one file with the records as they are."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from dagster_dataops.data import data_register
from dagster_dataops.datasets.exporters.csv_table import CsvTable
from dagster_dataops.datasets.exporters.endings import ending_of
from dagster_dataops.datasets.exporters.exporter import Exporter, ExportRecords, Place
from dagster_dataops.datasets.exporters.json_lines import (
    JsonLinesFile,
    JsonLinesFolder,
    checked_compression,
    compression_of,
)
from dagster_dataops.datasets.exporters.parquet_table import ParquetTable
from dagster_dataops.errors import DefinitionError
from dagster_dataops.operators.options.ranges import PositiveInt

export: Any = data_register.new_group("export")
PathLike: TypeAlias = str | os.PathLike[str]


class Parquet(export):
    """Write a Parquet file with typed columns.

    The columns and types are those of all records: integers and numbers become ``double``, a
    missing key is null, objects become structs. ``schema`` names the types of some columns, such as
    ``{"id": "int64", "tags": "list<string>"}``; ``"json"`` writes the values as JSON texts, for
    columns with values of several types. A column that holds nothing but objects without keys, or
    is nested more than 40 levels deep, is written so, too. A value that fits no type of its column
    fails the export, with file, line and column.

    ``row_group_rows=100_000`` is the most records in a row group, which also ends at 64 MiB;
    ``compression="zstd"`` may also be ``snappy``, ``gzip``, ``brotli``, ``lz4`` or ``none``. Needs
    the extra ``arrow``.

    Args:
        path: File that is written, relative to the root of the results unless absolute.
        schema: Arrow types by column; ``None`` infers all.
        row_group_rows: Most records in a row group.
        compression: ``zstd``, ``snappy``, ``gzip``, ``brotli``, ``lz4`` or ``none``.
    """

    format = ParquetTable.format
    place: Place = "file"

    def __init__(
        self,
        path: PathLike,  # noqa: ARG002 - taken by the engine
        schema: Mapping[str, str] | None = None,
        row_group_rows: PositiveInt = 100_000,
        compression: str = "zstd",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._table = ParquetTable(schema, row_group_rows, compression)

    def write(self, records: ExportRecords, place: Path) -> None:
        self._table.write(records, place)


class Csv(export):
    """Write a CSV file: a header, and one row per record, in UTF-8.

    The columns are those of all records, in the order of first occurrence, or ``columns``. A
    missing key and null are an empty cell; objects and arrays are written as JSON, booleans as
    ``true`` and ``false``. ``delimiter`` is a comma, or a tab if the path ends in ``.tsv``.

    Spreadsheets take a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break for
    a formula, which can read files or send data. ``escape_formulas=True`` puts an apostrophe before
    such a character, also behind a comma, semicolon or other end of a cell, in texts and in names
    of columns; numbers such as ``-5`` stay numbers. Set it if people open the file in a spreadsheet
    and the texts are not your own. The texts are then no longer exactly those of the records.

    Args:
        path: File that is written, relative to the root of the results unless absolute.
        columns: Columns, in this order; ``None`` for all.
        delimiter: Character between cells; ``None`` is a comma, or a tab for ``.tsv``.
        escape_formulas: Whether an apostrophe is put before formulas.
    """

    format = CsvTable.format
    place: Place = "file"

    added_later = frozenset({"escape_formulas"})

    def __init__(
        self,
        path: PathLike,
        columns: Sequence[str] | None = None,
        delimiter: str | None = None,
        *,
        escape_formulas: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        usual = "\t" if str(path).endswith(".tsv") else ","
        wanted = usual if delimiter is None else delimiter
        self._table = CsvTable(columns, wanted, escape_formulas=escape_formulas)

    def write(self, records: ExportRecords, place: Path) -> None:
        self._table.write(records, place)


class Jsonl(export):
    """Write a JSON Lines file, or a folder of them: one record per line, unchanged.

    ``compression`` is ``None``, ``"gz"`` or ``"zst"`` (extra ``zstd``); ``None``
    takes that of a path that ends in ``.gz`` or ``.zst``. Equal records give equal bytes.

    With ``records_per_file`` the path is a folder. It gets the files ``part-00000.jsonl`` and so
    on, each with that number of records, the last with the rest; in order of their names they hold
    the records in order. The folder is replaced whole, so that no file of an export with more files
    remains. A folder with files that no export wrote is refused.

    Args:
        path: File or folder that is written, relative to the root of the results unless absolute.
        compression: ``gz`` or ``zst``; ``None`` for that of the path.
        records_per_file: Records in each file of a folder; ``None`` writes one file.
    """

    format = JsonLinesFile.format
    added_later = frozenset({"records_per_file"})

    def __init__(
        self,
        path: PathLike,
        compression: str | None = None,
        records_per_file: PositiveInt | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.place: Place = "file" if records_per_file is None else "folder"
        if records_per_file is not None:
            _check_folder(path)
            self._lines: Exporter = JsonLinesFolder(
                records_per_file, checked_compression(compression)
            )
            return
        by_ending = compression_of(str(path))
        if compression is not None and by_ending not in {None, compression}:
            msg = f"compression is {compression!r}, and the path ends in .{by_ending}"
            raise DefinitionError(msg)
        self._lines = JsonLinesFile(checked_compression(compression or by_ending))

    def write(self, records: ExportRecords, place: Path) -> None:
        self._lines.write(records, place)


def _check_folder(path: PathLike) -> None:
    """Check that a path does not look like that of a file."""
    if ending_of(Path(path)) is not None:
        msg = (
            f"path is {str(path)!r}, the name of a file; with records_per_file it must be that of "
            "a folder, such as 'corpus'. Files in it are compressed with compression='gz' or 'zst'"
        )
        raise DefinitionError(msg)
