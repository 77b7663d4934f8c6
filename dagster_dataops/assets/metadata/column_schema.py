"""Column schema: the JSON types that were seen in every column, and how often it was empty."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

import dagster as dg

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.record_samples import RecordSample, spread_sample
from dagster_dataops.records import JsonValue, Record

SAMPLE_RECORDS: Final = 250
_COLUMNS: Final = 200  # records whose keys are data, such as ids, have as many as one likes
_COUNTED: Final = 100_000  # of the others; nobody minds whether there are more
_BATCH: Final = 256
_ITEMS: Final = 20  # of an array, and keys of an object, that are looked at
_DEPTH: Final = 3  # how deep the types of arrays in arrays are told
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
class Column:
    """What was seen of one column.

    Attributes:
        name: The key.
        types: How many records held which type.
        keys: Keys of the objects that it held, in the order in which they were first seen.
    """

    name: str
    types: Counter[str] = field(default_factory=Counter)
    keys: dict[str, None] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """The types, as ``string``, ``integer | null`` or ``array<string>``."""
        return union(self.types)

    def see(self, values: Sequence[JsonValue]) -> None:
        """Take note of the values of some records."""
        kinds = Counter(map(type, values))
        for kind, count in kinds.items():
            if kind in _NAMES:
                self.types[_NAMES[kind]] += count
            else:
                self.types.update(type_of(value) for value in values if type(value) is kind)
        for value in values if dict in kinds else ():
            if isinstance(value, dict) and len(self.keys) <= _ITEMS:
                self.keys.update(dict.fromkeys(list(value)[:_ITEMS]))

    def describe(self, records: int) -> str:
        """Return in what share of ``records`` it stood, and was null; what its objects hold."""
        present, nulls = self.types.total(), self.types["null"]
        share = (
            "in all records"
            if present == records
            else f"in {_percent(present, records)} of records"
        )
        parts = [share, f"{_percent(nulls, records)} null"] if nulls else [share]
        if self.keys:
            shown = list(self.keys)[:_KEYS_SHOWN]
            more = ", ..." if len(self.keys) > len(shown) else ""
            parts.append(f"with {', '.join(shown)}{more}")
        return ", ".join(parts)

    def never_empty(self, records: int) -> bool:
        """Whether every one of ``records`` had it, with a value."""
        return self.types.total() == records and not self.types["null"]


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a dataset, in the order in which they were first seen.

    Attributes:
        columns: By name, at most 200 of them.
        left_out: How many more there were; no more than 100,000 are counted.
        records: How many records were looked at.
        whole: Whether these were all.
        rows: How many records there are, where that is known.
    """

    columns: Mapping[str, Column]
    left_out: int
    records: int
    whole: bool
    rows: int | None

    @property
    def coverage(self) -> str:
        """What the schema rests on, in words."""
        if self.whole:
            return f"all {self.records:,} records"
        total = "" if self.rows is None else f"of {self.rows:,} "
        return f"{self.records:,} {total}sampled"  # Dagster cuts at 27 characters

    def table_schema(self) -> dg.TableSchema:
        """Return it as Dagster's."""
        notes = [self.coverage]
        if self.left_out:
            notes.append(f"{self.left_out:,} more columns")
        return dg.TableSchema(
            columns=[self._table_column(column) for column in self.columns.values()],
            constraints=dg.TableConstraints(other=notes),
        )

    def _table_column(self, column: Column) -> dg.TableColumn:
        certain = self.whole and column.never_empty(self.records)
        return dg.TableColumn(
            name=column.name,
            type=column.type,
            description=column.describe(self.records),
            constraints=dg.TableColumnConstraints(nullable=not certain),
        )


def schema_of(dataset: JsonlDataset, sample: RecordSample | None = None) -> Schema:
    """Return the columns of a dataset, by a sample of about 250 records from all over it.

    Raises:
        InputError: It cannot be read.
    """
    taken = spread_sample(dataset, SAMPLE_RECORDS) if sample is None else sample
    return _schema_of(taken.records, whole=taken.whole, rows=dataset.rows)


def whole_schema(datasets: Iterable[JsonlDataset]) -> Schema:
    """Return the columns of datasets taken together, by reading every record of them.

    Raises:
        InputError: One of them cannot be read, or a line of it is no record.
    """
    return _schema_of(chain.from_iterable(datasets), whole=True, rows=None)


def _schema_of(records: Iterable[Record], *, whole: bool, rows: int | None) -> Schema:
    columns: dict[str, Column] = {}
    left_out: set[str] = set()
    count = 0
    remaining = iter(records)
    while batch := list(islice(remaining, _BATCH)):  # column by column, at a quarter of the price
        count += len(batch)
        for name in dict.fromkeys(chain.from_iterable(batch)):
            if name not in columns:
                if len(columns) >= _COLUMNS:
                    if len(left_out) < _COUNTED:
                        left_out.add(name)
                    continue
                columns[name] = Column(name)
            columns[name].see([record[name] for record in batch if name in record])
    return Schema(columns, len(left_out), count, whole, rows)


def type_of(value: JsonValue, depth: int = _DEPTH) -> str:
    """Return the JSON type of a value, arrays with that of their first 20 items."""
    if isinstance(value, dict):
        return "object"
    if not isinstance(value, list):
        return _NAMES[type(value)]
    if not value or not depth:
        return "array"
    return f"array<{union(type_of(item, depth - 1) for item in value[:_ITEMS])}>"


def union(types: Iterable[str]) -> str:
    """Return several types as one text: the most general ones, ``null`` last."""
    found = set(types)
    if "number" in found:
        found.discard("integer")
    arrays = {name for name in found if name.startswith("array<")}
    if arrays:
        found -= {*arrays, "array"}  # an empty array fits any of them
        inner = union(part for name in arrays for part in _parts(name[len("array<") : -1]))
        found.add(f"array<{inner}>")
    ranked = sorted(found - {"null"}, key=lambda name: _ORDER.index(name.partition("<")[0]))
    return " | ".join([*ranked, "null"] if "null" in found else ranked)


def _parts(text: str) -> list[str]:
    """Return the members of a union, which stand between bars outside all brackets."""
    parts, depth = [""], 0
    for word in text.split(" | "):
        parts[-1] += f" | {word}" if depth else word
        depth += word.count("<") - word.count(">")
        if not depth:
            parts.append("")
    return [part for part in parts if part]


def _percent(part: int, whole: int) -> str:
    """Return a share in per cent; never 0 for some, nor 100 for less than all."""
    if not part or part == whole:
        return f"{100 * part // max(whole, 1)} %"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f} %"
