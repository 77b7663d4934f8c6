"""Column lineage: map every column of a result to upstream columns.

There are three sources:

- the options of the operator (``input_key``, ``output_key``),
- the kind of the operator (a selection changes no record),
- sampled records: a column whose values all occur in the upstream column of the same name was
  passed through; a column whose values all occur in a dropped column was renamed.

A column that none of these explains gets no guessed origin; its note says that it is unknown.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import dagster as dg

from dagster_dataops.assets.metadata.columns.column_values import (
    INPUT_RECORDS,
    comparable,
    compared_records,
    inputs_to_see,
    values_of,
)
from dagster_dataops.assets.metadata.key_options import column_of, written_keys
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.operators.definition.spec import OperatorKind

KeyedDatasets: TypeAlias = Sequence[tuple[dg.AssetKey, JsonlDataset]]

PASSED: Final = "passed through"
CHANGED: Final = "changed"
CHANGED_OR_MOVED: Final = "changed or reordered"
RENAMED: Final = "renamed"
NEW: Final = "new"
DROPPED: Final = "dropped"
UNKNOWN_ORIGIN: Final = "the operator does not declare its origin"


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """The origin of one column.

    Attributes:
        column: The name of the column; for a dropped column its name upstream.
        origins: Upstream assets with the key read in each, including the path in the column.
        deps: The same origins in Dagster's form, without paths.
        note: The change in words, such as ``renamed``.
    """

    column: str
    origins: tuple[tuple[dg.AssetKey, str], ...]
    deps: tuple[dg.TableColumnDep, ...]
    note: str


class ColumnTracer:
    """Finds the origins of the columns of a result.

    Args:
        options: The options of the operator; ``input_key`` and ``output_key`` are used.
        upstream: The inputs with their asset keys; several with one key are partitions.
        result: The dataset that the operator wrote.
        kind: The kind of the operator: a selection changes no record, and a record operator keeps
            their order.

    Attributes:
        records: The first records of the result.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        upstream: KeyedDatasets,
        result: JsonlDataset,
        kind: OperatorKind = "record",
    ) -> None:
        parts: dict[dg.AssetKey, list[JsonlDataset]] = {}
        for key, dataset in upstream:
            parts.setdefault(key, []).append(dataset)
        datasets = [dataset for _, dataset in upstream]
        ordered = kind == "record"  # other kinds may move records
        seen = inputs_to_see(result, datasets) if ordered else INPUT_RECORDS
        self._inputs = {key: values_of(found, seen) for key, found in parts.items()}
        self.records = compared_records(result, datasets)
        self._kind = kind
        self._known = {name for values in self._inputs.values() for name in values.columns}
        self._written = {} if kind == "selection" else written_keys(options)
        self._read = list(dict.fromkeys(key for keys in self._written.values() for key in keys))

    def trace(self, columns: Iterable[str] = ()) -> list[ColumnOrigin]:
        """Return the origins of the columns of the result, then those of dropped columns.

        Args:
            columns: Columns that were found in other records than the first ones.
        """
        names = dict.fromkeys([*columns, *(name for record in self.records for name in record)])
        gone = [name for name in dict.fromkeys(self._all_inputs()) if name not in names]
        origins = [self._origin(name, gone) for name in names]
        used = {key for origin in origins if origin.note == RENAMED for _, key in origin.origins}
        return [*origins, *(self._dropped(name) for name in gone if name not in used)]

    def _all_inputs(self) -> Iterable[str]:
        return (name for values in self._inputs.values() for name in values.columns)

    def _origin(self, column: str, gone: Sequence[str]) -> ColumnOrigin:
        holders = self._holders(column)
        same = self._passing(column, holders)
        if same:
            return self._made(column, [(key, column) for key in same], PASSED)
        written = self._written_into(column)
        if holders:
            return self._made(column, self._changed_from(column, written), self._changed(holders))
        if written:
            return self._made(column, self._located(self._reads_of(written)), NEW)
        renamed = self._renamed_from(column, gone)
        if renamed:
            return self._made(column, renamed[:1], RENAMED)
        note = NEW if self._read else f"{NEW}; {UNKNOWN_ORIGIN}"
        return self._made(column, self._located(self._read), note)

    def _changed_from(self, column: str, written: list[str]) -> list[tuple[dg.AssetKey, str]]:
        """Return the origins of a column that also exists upstream, with other values."""
        if column in written:  # overwritten as a whole: its old values count only if they are read
            return self._located(self._reads_of(written))
        before = [(key, column) for key in self._holders(column)]
        return [*before, *self._located(self._reads_of(written) if written else self._read)]

    def _changed(self, holders: Sequence[dg.AssetKey]) -> str:
        certain = self._kind == "record" or all(self._inputs[key].whole for key in holders)
        note = CHANGED if certain else CHANGED_OR_MOVED
        return note if self._read else f"{note}; {UNKNOWN_ORIGIN}"

    def _dropped(self, column: str) -> ColumnOrigin:
        return self._made(column, [(key, column) for key in self._holders(column)], DROPPED)

    # ------------------------------------------------------------ questions about the inputs

    def _holders(self, column: str) -> list[dg.AssetKey]:
        return [key for key, values in self._inputs.items() if column in values.columns]

    def _agrees(self, key: dg.AssetKey, column: str, name: str) -> bool:
        return self._inputs[key].agrees(column, self.records, name)

    def _passing(self, column: str, holders: list[dg.AssetKey]) -> list[dg.AssetKey]:
        """Return those of ``holders`` from which a column was passed through unchanged."""
        if self._kind == "stream" and self._mixed(column, holders):
            return holders
        same = [key for key in holders if self._agrees(key, column, column)]
        return same or (holders if self._kind == "selection" else [])

    def _mixed(self, column: str, holders: Sequence[dg.AssetKey]) -> bool:
        """Return whether all values of a column occur in the inputs taken together."""
        known = {one for key in holders for one in self._inputs[key].seen(column)}
        given = [record[column] for record in self.records if column in record]
        return bool(given) and all(comparable(value) in known for value in given)

    def _renamed_from(self, column: str, gone: Sequence[str]) -> list[tuple[dg.AssetKey, str]]:
        inputs = self._inputs
        return [(key, name) for name in gone for key in inputs if self._moved(key, name, column)]

    def _moved(self, key: dg.AssetKey, column: str, name: str) -> bool:
        """Return whether ``name`` is the renamed upstream ``column``; one value proves nothing."""
        distinct = {str(record[name]) for record in self.records if name in record}
        return len(distinct) > 1 and self._agrees(key, column, name)

    def _written_into(self, column: str) -> list[str]:
        """Return the declared keys that name the column or a path inside it."""
        return [key for key in self._written if column_of(key, self._known | {column}) == column]

    def _reads_of(self, written: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(read for key in written for read in self._written[key]))

    def _located(self, keys: Sequence[str]) -> list[tuple[dg.AssetKey, str]]:
        """Return the keys with every input that has their column."""
        found = [
            (asset, key)
            for asset, values in self._inputs.items()
            for key in keys
            if column_of(key, values.columns) in values.columns
        ]
        return list(dict.fromkeys(found))

    def _made(
        self, column: str, origins: Sequence[tuple[dg.AssetKey, str]], note: str
    ) -> ColumnOrigin:
        unique = tuple(dict.fromkeys(origins))
        columns = [(asset, column_of(key, self._inputs[asset].columns)) for asset, key in unique]
        deps = [dg.TableColumnDep(asset, name) for asset, name in dict.fromkeys(columns)]
        return ColumnOrigin(column, unique, tuple(deps), note)


def column_lineage(
    options: Mapping[str, Any],
    upstream: KeyedDatasets,
    result: JsonlDataset,
    kind: OperatorKind = "record",
) -> dg.TableColumnLineage | None:
    """Return the column lineage of ``result``; ``None`` without inputs.

    Arguments as `ColumnTracer`.
    """
    if not upstream:
        return None
    return as_dagster(ColumnTracer(options, upstream, result, kind).trace())


def as_dagster(origins: Iterable[ColumnOrigin]) -> dg.TableColumnLineage:
    """Return origins as Dagster's column lineage, which has no dropped columns."""
    deps = {origin.column: list(origin.deps) for origin in origins if origin.note != DROPPED}
    return dg.TableColumnLineage(deps_by_column=deps)
