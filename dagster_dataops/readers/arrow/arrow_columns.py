"""The columns of Arrow tables, and the conversion of their rows to records."""

from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import Sequence as SequenceOf
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.readers.arrow.arrow_values import (
    Conversion,
    conversion_of,
    finite,
    is_finite,
    may_hold_floats,
    nullable,
)

# What pyarrow raises for values that Python cannot hold; SystemError if lengths are damaged.
UNREADABLE: Final = (ValueError, OverflowError, SystemError, pa.ArrowException)
HandleFailure = Callable[[Any, StreamSourceError], object]


class _Column(NamedTuple):
    """A column, and how its values become JSON."""

    field: pa.Field
    conversion: Conversion
    may_hold_floats: bool


class RecordColumns:
    """The columns from which records are made.

    Args:
        path: The path to show in messages.
        schema: The schema of the file.
        wanted: The columns to read, in order; all if ``None``.
        missing: Texts that become ``None`` in columns of texts; ``nan``, ``inf`` and ``-inf``, in
            any case, stand for these numbers, too.
        parse_json: Whether values of Arrow's JSON type become what they say; else they stay texts.
        conversions: Conversions of columns that differ from those of their types.

    Raises:
        StreamSourceError: A column is missing, occurs twice, or cannot be converted to JSON.
    """

    def __init__(
        self,
        path: str,
        schema: pa.Schema,
        wanted: SequenceOf[str] | None,
        missing: Collection[str] = (),
        *,
        parse_json: bool = False,
        conversions: Mapping[str, Conversion] | None = None,
    ) -> None:
        self._path, self._conversions = path, conversions or {}
        self._conversion_of = partial(conversion_of, parse_json=parse_json)
        self._missing = frozenset(missing)
        self._missing_numbers = frozenset(text.lower() for text in missing)
        self.names = tuple(schema.names if wanted is None else wanted)
        for name in self.names:
            count = schema.names.count(name)
            if count != 1:
                fault = "has no column" if not count else "has two columns"
                raise StreamSourceError(path, f"{fault} {name!r}; there are {schema.names}")
        self._columns = [self._column(schema.field(name)) for name in self.names]

    def _column(self, field: pa.Field) -> _Column:
        try:
            conversion = self._conversions.get(field.name) or self._conversion_of(field.type)
            return _Column(field, conversion, may_hold_floats(field.type))
        except TypeError as error:
            reason = (
                f"column {field.name!r} is {field.type}, and {error} cannot be converted to JSON; "
                "columns=[...] leaves it out"
            )
            raise StreamSourceError(self._path, reason) from error

    def good_rows(
        self, rows: Any, place: Callable[[int], str], handle: HandleFailure
    ) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Yield the records of a table or record batch, in runs of good rows.

        Args:
            rows: The table or record batch.
            place: Returns the place of a row, given its index in ``rows``, for messages.
            handle: Called with a row that Python or JSON cannot hold, and the error that names it.

        Yields:
            The index of the first row of a run, and the records.
        """
        try:
            whole = self._records(rows)
        except _BadValueError:
            yield from self._row_by_row(rows, place, handle)
        else:
            yield 0, whole

    def _row_by_row(
        self, rows: Any, place: Callable[[int], str], handle: HandleFailure
    ) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        begin, good = 0, []
        for at in range(rows.num_rows):
            row = rows.slice(at, 1)
            try:
                good += self._records(row)
            except _BadValueError as error:
                yield begin, good
                handle(_shown(row), StreamSourceError(place(at), str(error)))
                begin, good = at + 1, []
        yield begin, good

    def _records(self, rows: Any) -> list[dict[str, Any]]:
        values = [self._values(rows, column) for column in self._columns]
        if not values:
            return [{} for _ in range(rows.num_rows)]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*values, strict=True)]

    def _values(self, rows: Any, column: _Column) -> list[Any]:
        (stored, convert), field = column.conversion, column.field
        stored_column = rows.column(field.name)
        try:
            if stored != field.type:
                stored_column = stored_column.cast(stored)
            values: list[Any] = stored_column.to_pylist()
            if convert is not None:
                values = list(map(nullable(convert), values))
            if column.may_hold_floats and not is_finite(stored_column):
                values = [finite(value, self._missing_numbers) for value in values]
        except UNREADABLE as error:
            msg = f"column {field.name!r} has a value that cannot be read: {error}"
            raise _BadValueError(msg) from error
        if not self._missing:
            return values
        return [
            None if type(value) is str and value in self._missing else value for value in values
        ]


class _BadValueError(ValueError):
    """Python or JSON cannot hold a value."""


def _shown(row: Any) -> Any:
    """Return a row as far as Python can hold it, for the quarantine."""
    try:
        return row.to_pylist()[0]
    except UNREADABLE:
        return str(row)
