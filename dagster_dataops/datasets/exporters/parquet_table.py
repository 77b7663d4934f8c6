"""Parquet files."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dagster_dataops.datasets.exporters.exporter import ExportRecords, Place
from dagster_dataops.datasets.exporters.packages import require
from dagster_dataops.errors import DefinitionError

_GROUP_BYTES: Final = 64 << 20  # of Arrow memory: bounds what a row group takes
COMPRESSIONS: Final = ("zstd", "snappy", "gzip", "brotli", "lz4", "none")


class ParquetTable:
    """Writes a Parquet file with typed columns.

    The records are read once, by Arrow, if all of them fit the types of the first thousand;
    otherwise twice, first for the types of all columns.

    Args:
        schema: The names of the types of some columns; those of the others are inferred.
        row_group_rows: The most records in a row group. A row group also ends at 64 MiB.
        compression: The codec.
    """

    format = "parquet"
    place: Place = "file"

    def __init__(
        self,
        schema: Mapping[str, str] | None = None,
        row_group_rows: int = 100_000,
        compression: str = "zstd",
    ) -> None:
        require("pyarrow", "writing Parquet files", "arrow")
        if row_group_rows < 1:
            msg = f"row_group_rows is {row_group_rows}; it must be 1 or more"
            raise DefinitionError(msg)
        if compression not in COMPRESSIONS:
            msg = f"compression is {compression!r}; it must be one of {', '.join(COMPRESSIONS)}"
            raise DefinitionError(msg)
        self._schema = checked_schema(schema)
        self._rows = row_group_rows
        self._compression = compression

    def write(self, records: ExportRecords, place: Path) -> None:
        """Write the row groups."""
        from pyarrow import parquet

        from dagster_dataops.datasets.exporters.arrow_types import write_batches

        def written(schema: Any, table_batches: Iterator[Any]) -> None:
            with parquet.ParquetWriter(place, schema, compression=self._compression) as writer:
                for group in row_groups(table_batches, self._rows):
                    writer.write_table(group, row_group_size=group.num_rows or None)

        write_batches(records, self._schema, written)


def checked_schema(schema: Mapping[str, str] | None) -> dict[str, str]:
    """Check a schema and return it. Only one with columns imports pyarrow."""
    columns: object = {} if schema is None else schema
    if not isinstance(columns, Mapping) or not all(
        isinstance(column_type, str) for column_type in columns.values()
    ):
        msg = f"schema is {schema!r}; it must map names of columns to names of types"
        raise DefinitionError(msg)
    if columns:
        from dagster_dataops.datasets.exporters.arrow_types import ArrowTable

        ArrowTable(columns)
    return dict(columns)


def row_groups(table_batches: Iterator[Any], rows: int, most: int = _GROUP_BYTES) -> Iterator[Any]:
    """Yield record batches as tables of at most ``rows`` records, and usually ``most`` bytes."""
    import pyarrow as pa

    parts: list[Any] = []
    count = size = 0
    for batch in table_batches:
        part = batch
        while count + part.num_rows >= rows or size + part.nbytes >= most:
            cut = min(part.num_rows, rows - count)
            yield pa.Table.from_batches([*parts, part.slice(0, cut)])
            part = part.slice(cut)
            parts, count, size = [], 0, 0
            if not part.num_rows:
                break
        if part.num_rows:
            parts.append(part)
            count += part.num_rows
            size += part.nbytes
    if parts:
        yield pa.Table.from_batches(parts)
