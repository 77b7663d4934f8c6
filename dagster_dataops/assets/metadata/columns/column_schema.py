"""Column schema: the JSON types of every column, and the shares of missing and null values."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

import dagster as dg

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.record_samples import spread_sample
from dagster_dataops.foundation.quantities import counted, percentage
from dagster_dataops.records import JsonValue, Record

_SAMPLE_RECORDS: Final = 250
_COLUMNS: Final = 200  # keys that are data, such as ids, make any number of columns
_COUNTED: Final = 100_000  # further columns that are counted
_BATCH: Final = 256
_ITEMS: Final = 20  # inspected items of an array, and keys of an object
_DEPTH: Final = 3  # depth of nested array types
_KEYS_SHOWN: Final = 12
_NAMES: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
}
_ORDER: Final = ("boolean", "integer", "number", "string", "object", "array")


@dataclass(slots=True)
class ColumnStatistics:
    """Types and keys in one column.

    Attributes:
        name: The name of the column.
        types: The number of records by type.
        keys: Keys of its objects, in the order of first occurrence.
    """

    name: str
    types: Counter[str] = field(default_factory=Counter)
    keys: dict[str, None] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """The union of the types: ``string``, ``integer | null``, ``array<string>``."""
        return union(self.types)

    def see(self, values: Sequence[JsonValue]) -> None:
        """Count the values of some records."""
        kinds = Counter(map(type, values))
        for kind, count in kinds.items():
            if kind in _NAMES:
                self.types[_NAMES[kind]] += count
            else:
                self.types.update(type_of(value) for value in values if type(value) is kind)
        for value in values if dict in kinds else ():
            if isinstance(value, dict) and len(self.keys) <= _ITEMS:
                self.keys.update(dict.fromkeys(list(value)[:_ITEMS]))

    def shares(self, records: int) -> list[str]:
        """Return the share of ``records`` with the column unless all have it, and with null."""
        present, nulls = self.types.total(), self.types["null"]
        texts = [] if present == records else [f"in {percentage(present / records)} of records"]
        return [*texts, f"{percentage(nulls / records)} null"] if nulls else texts

    @property
    def keys_text(self) -> str:
        """The keys of its objects, as a sentence; empty if it has no objects."""
        if not self.keys:
            return ""
        shown = list(self.keys)[:_KEYS_SHOWN]
        more = ", ..." if len(self.keys) > len(shown) else ""
        return f"Keys: {', '.join(shown)}{more}."

    def never_empty(self, records: int) -> bool:
        """Return whether all ``records`` have a value other than null."""
        return self.types.total() == records and not self.types["null"]


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """The columns of a dataset, in the order of first occurrence.

    Attributes:
        columns: Statistics by name, for at most 200 columns.
        left_out: The number of further columns, at most 100,000.
        records: The number of inspected records.
        whole: Whether all records were inspected.
        rows: The number of records in the dataset, if known.
    """

    columns: Mapping[str, ColumnStatistics]
    left_out: int
    records: int
    whole: bool
    rows: int | None

    @property
    def coverage(self) -> str:
        """The number of inspected records, in words."""
        if self.whole:
            return "1 record" if self.records == 1 else f"all {self.records:,} records"
        total = "" if self.rows is None else f"of {self.rows:,} "
        return f"{self.records:,} {total}sampled"  # Dagster cuts at 27 characters

    def table_schema(self) -> dg.TableSchema:
        """Return Dagster's form of the schema.

        The constraints of a column are the shares of records that lack it or have null; its
        description is the keys of its objects. `with_texts` adds what it is.
        """
        notes = [self.coverage]
        if self.left_out:
            notes.append(counted(self.left_out, "more columns"))
        return dg.TableSchema(
            columns=[self._table_column(column) for column in self.columns.values()],
            constraints=dg.TableConstraints(other=notes),
        )

    def _table_column(self, column: ColumnStatistics) -> dg.TableColumn:
        certain = self.whole and column.never_empty(self.records)
        return dg.TableColumn(
            name=column.name,
            type=column.type,
            description=column.keys_text or None,
            constraints=dg.TableColumnConstraints(
                nullable=not certain, other=column.shares(self.records)
            ),
        )


def with_texts(schema: dg.TableSchema, texts: Mapping[str, str]) -> dg.TableSchema:
    """Return the schema with a text before the description of each column that has one."""
    columns = [
        dg.TableColumn(
            name=column.name,
            type=column.type,
            description=" ".join(filter(None, [texts.get(column.name), column.description]))
            or None,
            constraints=column.constraints,
            tags=column.tags,
        )
        for column in schema.columns
    ]
    return dg.TableSchema(columns=columns, constraints=schema.constraints)


def schema_of(dataset: JsonlDataset) -> ColumnSchema:
    """Return the columns of a dataset, from a sample of about 250 records spread over it.

    Raises:
        InputError: The dataset cannot be read.
    """
    sample = spread_sample(dataset, _SAMPLE_RECORDS)
    return _schema_of(sample.records, whole=sample.whole, rows=dataset.rows)


def whole_schema(datasets: Iterable[JsonlDataset]) -> ColumnSchema:
    """Return the columns of all datasets together, from every record.

    Raises:
        InputError: A dataset cannot be read, or a line is not a record.
    """
    return _schema_of(chain.from_iterable(datasets), whole=True, rows=None)


def _schema_of(records: Iterable[Record], *, whole: bool, rows: int | None) -> ColumnSchema:
    columns: dict[str, ColumnStatistics] = {}
    left_out: set[str] = set()
    count = 0
    remaining = iter(records)
    while batch := list(islice(remaining, _BATCH)):  # a quarter of the time of record by record
        count += len(batch)
        for name in dict.fromkeys(chain.from_iterable(batch)):
            if name not in columns:
                if len(columns) >= _COLUMNS:
                    if len(left_out) < _COUNTED:
                        left_out.add(name)
                    continue
                columns[name] = ColumnStatistics(name)
            columns[name].see([record[name] for record in batch if name in record])
    return ColumnSchema(columns, len(left_out), count, whole, rows)


def type_of(value: JsonValue, depth: int = _DEPTH) -> str:
    """Return the JSON type of a value; for an array with the types of its first 20 items."""
    if isinstance(value, dict):
        return "object"
    if not isinstance(value, list):
        return _NAMES[type(value)]
    if not value or not depth:
        return "array"
    return f"array<{union(type_of(item, depth - 1) for item in value[:_ITEMS])}>"


def union(types: Iterable[str]) -> str:
    """Return the union of types as text: more general types absorb others, ``null`` is last."""
    names = set(types)
    if "number" in names:
        names.discard("integer")
    arrays = {name for name in names if name.startswith("array<")}
    if arrays:
        names -= {*arrays, "array"}  # an empty array fits every array type
        inner = union(part for name in arrays for part in _parts(name[len("array<") : -1]))
        names.add(f"array<{inner}>")
    ranked = sorted(names - {"null"}, key=lambda name: _ORDER.index(name.partition("<")[0]))
    return " | ".join([*ranked, "null"] if "null" in names else ranked)


def _parts(text: str) -> list[str]:
    """Split a union at the bars that are outside all brackets."""
    parts, depth = [""], 0
    for word in text.split(" | "):
        parts[-1] += f" | {word}" if depth else word
        depth += word.count("<") - word.count(">")
        if not depth:
            parts.append("")
    return [part for part in parts if part]
