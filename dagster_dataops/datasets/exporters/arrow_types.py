"""Arrow types of records: inferred from all of them, or given by name."""

import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final, TypeVar

import orjson
import pyarrow as pa

from dagster_dataops.datasets.exporters.exporter import ExportRecords, UnfitValueError
from dagster_dataops.datasets.exporters.quick_batches import (
    GuessError,
    quick_batches,
    reads_exactly,
)
from dagster_dataops.datasets.file_values.file_contents import bytes_and_path
from dagster_dataops.errors import DefinitionError, FileError
from dagster_dataops.foundation.places.bucket import local_path
from dagster_dataops.records import Record

T = TypeVar("T")
BATCH_RECORDS: Final = 1000
JSON: Final = "json"  # a type name: texts that hold the values as JSON
FILE: Final = "file"  # a type name: the content and the name of a file that the value names
_FILE_TYPE: Final = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_FILE_NAMES: Final = frozenset({FILE, f"list<{FILE}>"})
_FILES_AT_ONCE: Final = 16
_ERRORS: Final = (pa.ArrowException, OverflowError, TypeError, ValueError)
_NONE: Final = type(None)
_SIMPLE: Final = {bool: pa.bool_(), float: pa.float64(), str: pa.string()}
_DECLARED: Final = {**_SIMPLE, int: pa.int64()}
_UNIONS: Final = (typing.Union, types.UnionType)
_NOTHING: Final[Mapping[str, Any]] = types.MappingProxyType({})
_PYTHON_TYPES: Final = (
    (pa.types.is_boolean, {bool, _NONE}),
    (pa.types.is_integer, {int, _NONE}),
    (pa.types.is_floating, {int, float, _NONE}),
    (pa.types.is_temporal, {int, _NONE}),
    (pa.types.is_string, {str, _NONE}),
    (pa.types.is_large_string, {str, _NONE}),
)
_LARGEST_INT: Final = 2**63 - 1  # of int64
_LARGEST: Final = {pa.float16(): 65504.0, pa.float32(): 3.4028234663852886e38}
_SHOWN: Final = 40  # characters of a value in an error
_DEEPEST: Final = 40  # objects and arrays in one another; Arrow reads at most 49 from Parquet
_KINDS: Final = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a text",
    dict: "an object",
    list: "an array",
}


def batches(
    records: Iterable[Record], size: int = BATCH_RECORDS
) -> Iterator[tuple[int, list[Record]]]:
    """Yield the records in batches, each with the index of its first record."""
    remaining = iter(records)
    start = 0
    while batch := list(islice(remaining, size)):
        yield start, batch
        start += len(batch)


def write_batches(
    records: ExportRecords, declared: Mapping[str, str], write: Callable[[Any, Iterator[Any]], T]
) -> T:
    """Call ``write`` with the schema and the record batches of records; return its value.

    Args:
        records: The records.
        declared: As for `ArrowTable`.
        write: Writes a file. It is called a second time, to begin anew, if a guess of the schema
            was wrong.

    Raises:
        UnfitValueError: A value fits no type of its column.
    """
    table = ArrowTable(declared, records.columns)
    with suppress(GuessError, UnfitValueError):
        table.infer(records.sample(BATCH_RECORDS))
        if table.reads_exactly and local_path(records.location):
            quick = quick_batches(records.path, table.schema, BATCH_RECORDS)
            return write(table.schema, _counted(records, quick))
    table = ArrowTable(declared, records.columns)
    table.infer(records)
    size = _FILES_AT_ONCE if table.has_files else BATCH_RECORDS
    table_batches = (table.batch(start, batch) for start, batch in batches(records, size))
    return write(table.schema, table_batches)


def _counted(records: ExportRecords, table_batches: Iterator[Any]) -> Iterator[Any]:
    """Yield record batches, and count their records."""
    records.rows = 0
    for batch in table_batches:
        records.rows += batch.num_rows
        yield batch


class ArrowTable:
    """The Arrow schema of records, and their record batches.

    Args:
        columns: The names of the types of some columns, such as ``int64``, ``list<string>`` or
            ``json``; ``file`` and ``list<file>`` for columns that name files.
        declared: The declared types of columns, for columns without a given type.

    Attributes:
        schema: The schema, after `infer`.

    Raises:
        DefinitionError: A type is unknown.
    """

    def __init__(self, columns: Mapping[str, str], declared: Mapping[str, Any] = _NOTHING) -> None:
        known = {name: declared_type(kind) for name, kind in declared.items()}
        self._types = {name: kind for name, kind in known.items() if kind is not None}
        self._types |= {name: parsed_type(name, text) for name, text in columns.items()}
        self._json = {name for name, text in columns.items() if text == JSON}
        self._files = {name for name, text in columns.items() if text in _FILE_NAMES}
        self.schema = pa.schema([])
        self._checks: dict[str, Callable[[Any], bool]] = {}

    def infer(self, records: Iterable[Record]) -> None:
        """Set the schema to columns and types that fit all records.

        Integers and numbers become ``double``, and null fits every type. A column of objects that
        never have a key, or one nested too deep, is written as JSON: Parquet has no type for it.

        Raises:
            UnfitValueError: A column has values of two types.
        """
        known = pa.schema([])
        for start, batch in batches(records):
            names = dict.fromkeys(name for record in batch for name in record)
            known = self._with(known, list(names), start, batch)
        self._json |= {field.name for field in known if _needs_json(field.type)}
        missing = [(name, kind) for name, kind in self._types.items() if name not in known.names]
        fields = [
            pa.field(field.name, pa.string() if field.name in self._json else field.type)
            for field in known
        ]
        self.schema = pa.schema([*fields, *(pa.field(name, kind) for name, kind in missing)])
        self._checks = {
            field.name: fitting(field.type)
            for field in self.schema
            if field.name not in self._json
            and (field.name in self._types or _holds_floats(field.type))
        }

    @property
    def has_files(self) -> bool:
        """Whether the batches hold the content of files."""
        return bool(self._files)

    @property
    def reads_exactly(self) -> bool:
        """Whether Arrow can read the columns from JSON lines itself, without a loss."""
        kinds = [field.type for field in self.schema]
        return bool(kinds) and not self._json and not self._files and all(map(reads_exactly, kinds))

    def _with(self, known: Any, names: list[str], start: int, batch: list[Record]) -> Any:
        """Return the schema that also fits a batch."""
        for name in names:
            try:
                kind = self._types.get(name) or _type_of(_values(name, batch))
                known = _unified(known, name, kind)
            except _ERRORS:
                raise self._unfit(name, known, start, batch) from None
        return known

    def _unfit(self, name: str, known: Any, start: int, batch: list[Record]) -> UnfitValueError:
        """Return the error for the first record whose value does not fit those before it."""
        for index, record in enumerate(batch, start):
            value = record.get(name)
            try:
                known = _unified(known, name, pa.array([value]).type)
                pa.array([value], known.field(name).type)
            except _ERRORS:
                before = known.field(name).type if name in known.names else None
                there = f"the records before it hold {before}" if before else "it fits no type"
                return _error(index, name, value, there)
        return _error(start, name, batch[0].get(name), "the records hold values of several types")

    def batch(self, start: int, records: list[Record]) -> Any:
        """Return a record batch of the schema.

        Raises:
            UnfitValueError: A value does not fit the type of its column.
        """
        arrays = []
        for field in self.schema:
            values = _values(field.name, records)
            if field.name in self._json:
                values = [
                    None if value is None else orjson.dumps(value).decode() for value in values
                ]
            if field.name in self._files:
                values = [
                    _contents(start + at, field.name, value) for at, value in enumerate(values)
                ]
            check = self._checks.get(field.name)
            try:
                if check is not None and not all(map(check, values)):
                    raise TypeError(field.name)
                arrays.append(pa.array(values, field.type))
            except _ERRORS:
                raise _unfit_for(field, start, values, check) from None
        if not arrays:  # records without columns
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(records), pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _contents(index: int, name: str, value: Any) -> Any:
    """Return the content and the name of the file that a value names; of a list, those of each."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_contents(index, name, item) for item in value]
    try:
        return bytes_and_path(value, f"column {name!r}")
    except FileError as error:
        problem = f"the file {error.where} {error.found}"
        remedy = f"{error.remedy[:1].upper()}{error.remedy[1:]}, or drop such records before."
        raise UnfitValueError(index, name, problem, remedy) from error


def parsed_type(column: str, text: str) -> Any:
    """Return the Arrow type of a name."""
    if text == JSON:
        return pa.string()
    if text == FILE:
        return _FILE_TYPE
    if text.startswith("list<") and text.endswith(">"):
        return pa.list_(parsed_type(column, text[len("list<") : -1]))
    try:
        return pa.type_for_alias(text)
    except (ValueError, TypeError):
        msg = (
            f"schema gives column {column!r} the type {text!r}; use a type of Arrow such as "
            f"'int64', 'double', 'string', 'bool' or 'list<string>', or {JSON!r} or {FILE!r}"
        )
        raise DefinitionError(msg) from None


def declared_type(declared: Any) -> Any | None:
    """Return the Arrow type of a declared type; ``None`` if it does not determine one."""
    inner, outer = typing.get_args(declared), typing.get_origin(declared)
    if outer is list:
        kind = declared_type(inner[0])
        return None if kind is None else pa.list_(kind)
    if outer in _UNIONS:
        kinds = set(inner) - {_NONE}
        kinds -= {int} if float in kinds else set()
        return declared_type(kinds.pop()) if len(kinds) == 1 else None
    return _DECLARED.get(declared)


def _values(name: str, records: list[Record]) -> list[Any]:
    return [record.get(name) for record in records]


def _type_of(values: list[Any]) -> Any:
    """Return the type of the values of a column; quickly if all have one simple type."""
    kinds = set(map(type, values)) - {_NONE}
    if len(kinds) == 1 and (simple := _SIMPLE.get(kinds.pop())) is not None:
        return simple
    return pa.array(values).type


def fitting(kind: Any) -> Callable[[Any], bool]:
    """Return a function that returns whether a value fits a type without a loss.

    Arrow itself writes 1.5 as the integer or time 1, ``true`` as the number 1.0, 1e300 as an
    infinity of 32 bits, and a text as a list of its characters.
    """
    if kind in _LARGEST:
        most = _LARGEST[kind]
        return lambda value: value is None or (type(value) in {int, float} and abs(value) <= most)
    if pa.types.is_list(kind):
        item = fitting(kind.value_type)
        return lambda value: value is None or (type(value) is list and all(map(item, value)))
    if pa.types.is_struct(kind):
        inner = [(field.name, fitting(field.type)) for field in kind]
        return lambda value: (
            value is None
            or (type(value) is dict and all(fits(value.get(name)) for name, fits in inner))
        )
    for test, allowed in _PYTHON_TYPES:
        if test(kind):
            return lambda value: type(value) in allowed
    return lambda value: True  # noqa: ARG005 - Arrow checks it


def _holds_floats(kind: Any) -> bool:
    if pa.types.is_struct(kind):
        return any(_holds_floats(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _holds_floats(kind.value_type)
    return bool(pa.types.is_floating(kind))


def _unified(known: Any, name: str, kind: Any) -> Any:
    return pa.unify_schemas([known, pa.schema([(name, kind)])], promote_options="permissive")


def _unfit_for(
    field: Any, start: int, values: list[Any], check: Callable[[Any], bool] | None
) -> UnfitValueError:
    for index, value in enumerate(values, start):
        try:
            if check is not None and not check(value):
                raise TypeError(field.name)
            pa.array([value], field.type)
        except _ERRORS:
            return _error(index, field.name, value, f"the type of the column is {field.type}")
    return _error(start, field.name, values[0], f"the type of the column is {field.type}")


def _error(index: int, name: str, value: Any, there: str) -> UnfitValueError:
    shown = orjson.dumps(value).decode()
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
    other = "one type before"
    if type(value) is int and value > _LARGEST_INT:
        other = "the type 'uint64' if no value is negative"
    remedy = f"Write the column as JSON texts by schema={{{name!r}: {JSON!r}}}, or give it {other}."
    problem = f"it holds {_KINDS.get(type(value), 'null')} ({shown}), and {there}"
    return UnfitValueError(index, name, problem, remedy)


def _needs_json(kind: Any, depth: int = 0) -> bool:
    """Return whether Parquet cannot hold a type: it has empty structs, or is nested too deep."""
    if pa.types.is_struct(kind):
        inner = [field.type for field in kind]
    elif pa.types.is_list(kind):
        inner = [kind.value_type]
    else:
        return False
    return not inner or depth == _DEEPEST or any(_needs_json(part, depth + 1) for part in inner)
