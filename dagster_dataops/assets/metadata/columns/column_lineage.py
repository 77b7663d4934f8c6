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
from itertools import chain
from typing import Any, Final, TypeAlias

import dagster as dg

from dagster_dataops.assets.metadata.columns.column_values import (
    INPUT_RECORDS,
    compared_values,
    inputs_to_see,
    values_of,
)
from dagster_dataops.assets.metadata.key_options import column_of, written_keys
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.operators.kinds.kind import RecordOrigin

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

    Of the options, ``input_key`` and ``output_key`` are used. Several inputs with one key are
    partitions.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        upstream: KeyedDatasets,
        result: JsonlDataset,
        origin: RecordOrigin = RecordOrigin.EACH,
    ) -> None:
        parts: dict[dg.AssetKey, list[JsonlDataset]] = {}
        for key, dataset in upstream:
            parts.setdefault(key, []).append(dataset)
        datasets = [dataset for _, dataset in upstream]
        seen = inputs_to_see(result, datasets) if origin is RecordOrigin.EACH else INPUT_RECORDS
        self._inputs = {key: values_of(part, seen) for key, part in parts.items()}
        self._values = compared_values(result, datasets)
        self._records = origin
        self._known = dict.fromkeys(name for part in self._inputs.values() for name in part.values)
        self._written = {} if origin is RecordOrigin.SAME else written_keys(options)
        self._read = list(dict.fromkeys(key for keys in self._written.values() for key in keys))

    def trace(self, columns: Iterable[str] = ()) -> list[ColumnOrigin]:
        """Return the origins of the columns of the result, then those of dropped columns.

        ``columns`` were found in other records than the first ones.
        """
        names = dict.fromkeys([*columns, *self._values])
        gone = [name for name in self._known if name not in names]
        origins = [self._origin(name, gone) for name in names]
        used = {key for origin in origins if origin.note == RENAMED for _, key in origin.origins}
        return [*origins, *(self._dropped(name) for name in gone if name not in used)]

    def _origin(self, column: str, gone: Sequence[str]) -> ColumnOrigin:
        holders = self._holders(column)
        same = self._passing(column, holders)
        if same:
            return self._lineage(column, [(key, column) for key in same], PASSED)
        known = {*self._known, column}
        written = [key for key in self._written if column_of(key, known) == column]
        if holders:
            return self._lineage(
                column, self._changed_from(column, written), self._changed(holders)
            )
        if written:
            return self._lineage(column, self._located(self._reads_of(written)), NEW)
        renamed = self._renamed_from(column, gone)
        if renamed:
            return self._lineage(column, renamed[:1], RENAMED)
        note = NEW if self._read else f"{NEW}; {UNKNOWN_ORIGIN}"
        return self._lineage(column, self._located(self._read), note)

    def _changed_from(self, column: str, written: list[str]) -> list[tuple[dg.AssetKey, str]]:
        """Return the origins of a column that also exists upstream, with other values."""
        if column in written:  # overwritten as a whole: its old values count only if they are read
            return self._located(self._reads_of(written))
        before = [(key, column) for key in self._holders(column)]
        return [*before, *self._located(self._reads_of(written) if written else self._read)]

    def _changed(self, holders: Sequence[dg.AssetKey]) -> str:
        certain = self._records is RecordOrigin.EACH or all(
            self._inputs[key].whole for key in holders
        )
        note = CHANGED if certain else CHANGED_OR_MOVED
        return note if self._read else f"{note}; {UNKNOWN_ORIGIN}"

    def _dropped(self, column: str) -> ColumnOrigin:
        return self._lineage(column, [(key, column) for key in self._holders(column)], DROPPED)

    def _holders(self, column: str) -> list[dg.AssetKey]:
        return [key for key, part in self._inputs.items() if column in part.values]

    def _agrees(self, column: str, name: str, *keys: dg.AssetKey) -> bool:
        """Return whether the inputs have in ``column`` all values of ``name`` in the result."""
        values = self._values.get(name, set())
        known = (self._inputs[key].values.get(column, ()) for key in keys)
        return bool(values) and values.issubset(chain.from_iterable(known))

    def _passing(self, column: str, holders: list[dg.AssetKey]) -> list[dg.AssetKey]:
        """Return those of ``holders`` from which a column was passed through unchanged."""
        if self._records is RecordOrigin.MIXED and self._agrees(column, column, *holders):
            return holders
        same = [key for key in holders if self._agrees(column, column, key)]
        return same or (holders if self._records is RecordOrigin.SAME else [])

    def _renamed_from(self, column: str, gone: Sequence[str]) -> list[tuple[dg.AssetKey, str]]:
        if len(self._values.get(column, ())) < 2:  # one value proves nothing
            return []
        return [
            (key, name) for name in gone for key in self._inputs if self._agrees(name, column, key)
        ]

    def _reads_of(self, written: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(read for key in written for read in self._written[key]))

    def _located(self, keys: Sequence[str]) -> list[tuple[dg.AssetKey, str]]:
        """Return the keys with every input that has their column."""
        located = [
            (asset, key)
            for asset, part in self._inputs.items()
            for key in keys
            if column_of(key, part.values) in part.values
        ]
        return list(dict.fromkeys(located))

    def _lineage(
        self, column: str, origins: Sequence[tuple[dg.AssetKey, str]], note: str
    ) -> ColumnOrigin:
        unique = tuple(dict.fromkeys(origins))
        columns = [(asset, column_of(key, self._inputs[asset].values)) for asset, key in unique]
        deps = [dg.TableColumnDep(asset, name) for asset, name in dict.fromkeys(columns)]
        return ColumnOrigin(column, unique, tuple(deps), note)


def as_dagster(origins: Iterable[ColumnOrigin]) -> dg.TableColumnLineage:
    """Return origins as Dagster's column lineage, which has no dropped columns."""
    deps = {origin.column: list(origin.deps) for origin in origins if origin.note != DROPPED}
    return dg.TableColumnLineage(deps_by_column=deps)
