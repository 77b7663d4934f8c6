"""The columns of Arrow tables, and the conversion of their rows to records."""

from collections.abc import Sequence as SequenceOf
from typing import Any

import pyarrow as pa

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.readers.arrow.arrow_values import Conversion, conversion_of, nullable


class RecordColumns:
    """The columns from which records are made.

    Args:
        path: The path to show in messages.
        schema: The schema of the file.
        wanted: The columns to read, in order; all if ``None``.

    Raises:
        StreamSourceError: A column is missing, occurs twice, or cannot be converted to JSON.
    """

    def __init__(self, path: str, schema: pa.Schema, wanted: SequenceOf[str] | None) -> None:
        self._path = path
        self.names = tuple(schema.names if wanted is None else wanted)
        for name in self.names:
            count = schema.names.count(name)
            if count != 1:
                fault = "has no column" if not count else "has two columns"
                raise StreamSourceError(path, f"{fault} {name!r}; there are {schema.names}")
        self._columns = [self._column(schema.field(name)) for name in self.names]

    def _column(self, field: pa.Field) -> tuple[pa.Field, Conversion]:
        try:
            return field, conversion_of(field.type)
        except TypeError as error:
            reason = (
                f"column {field.name!r} is {field.type}, and {error} cannot be converted to JSON; "
                "columns=[...] leaves it out"
            )
            raise StreamSourceError(self._path, reason) from error

    def records(self, rows: Any) -> list[dict[str, Any]]:
        """Return the records of a table or record batch.

        Raises:
            StreamSourceError: Python or JSON cannot hold a value.
        """
        values = [self._values(rows, *column) for column in self._columns]
        if not values:
            return [{} for _ in range(rows.num_rows)]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*values, strict=True)]

    def _values(self, rows: Any, field: pa.Field, conversion: Conversion) -> list[Any]:
        stored, convert = conversion
        found = rows.column(field.name)
        try:
            if stored != field.type:
                found = found.cast(stored)
            values: list[Any] = found.to_pylist()
            return values if convert is None else list(map(nullable(convert), values))
        except (ValueError, OverflowError, pa.ArrowException) as error:
            reason = f"column {field.name!r} has a value that cannot be read: {error}"
            raise StreamSourceError(self._path, reason) from error
