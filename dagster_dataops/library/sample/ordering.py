"""``sample.Sort`` and ``sample.GroupBy``: put records into another order."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final

import orjson
import xxhash

from dagster_dataops.library.field_keys import FieldKey, Keys, key_list
from dagster_dataops.library.sample.ordering_partitions import (
    GroupInPartitions,
    SortInPartitions,
)
from dagster_dataops.library.sample.splitting import sample
from dagster_dataops.library.sorting.canonical_form import canonical
from dagster_dataops.library.sorting.external_sort import ExternalSort
from dagster_dataops.library.sorting.ordered_keys import ordered_key
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record, decode_own, encode


class Sort(sample):
    """Sort the records by ``sort_key``, one column or several.

    Values are numbers or texts; texts are compared by code points. ``reverse=True`` sorts from the
    largest to the smallest. Missing values, ``null`` and NaN come last in both directions. Records
    with equal values stay in input order.

    From 64 MB of input on, the records are sorted in ranges of keys by the worker processes, and a
    killed run continues with the ranges that are left. Files of up to twice the size of the input
    are in the node's folder then. Smaller inputs, and inputs with lines that are no records, are
    sorted in one process. Sorting uses up to ``max_memory_mb`` MB, then temporary files.

    Args:
        sort_key: Column of the values, or several.
        reverse: Whether the largest values come first.
        max_memory_mb: Memory in MB before files are used.
    """

    renamed_options: ClassVar = {"key": "sort_key"}

    def __init__(
        self,
        sort_key: Keys,
        *,
        reverse: bool = False,
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._columns = list(map(FieldKey, key_list("sort_key", sort_key)))
        self._reverse = reverse
        self._max_bytes = max_memory_mb << 20

    def forward_batch_input(self, records: Iterable[Record]) -> Iterator[Record]:
        with TemporaryDirectory(prefix="dataops-sort-") as folder:
            by_key = ExternalSort(Path(folder), self._max_bytes)
            for record in records:
                by_key.add(self._key_of(record), encode(record))
            yield from map(decode_own, by_key.data())

    def __dataops_regrouping__(self, sizes: Sequence[int]) -> SortInPartitions:
        return SortInPartitions(self._max_bytes, self._key_of)

    def _key_of(self, record: Record) -> bytes:
        values = [sort_value(column, record) for column in self._columns]
        return b"".join([ordered_key(value, reverse=self._reverse) for value in values])


class GroupBy(sample):
    """Make one record of the records with equal values of ``group_key``, one column or several.

    Writes these columns, and to ``output_key`` the list of the records of the group, in input
    order; with ``max_per_group`` only its first records. Groups are in the order of their
    first record. A missing value is ``null``.

    Large inputs are grouped by the worker processes, as `Sort` sorts them. Grouping uses up to
    ``max_memory_mb`` MB and one group in each process, then temporary files.

    Args:
        group_key: Column of the groups, or several.
        output_key: Column of the records of the group.
        max_per_group: Most records in a group; ``None`` for all.
        max_memory_mb: Memory in MB before files are used.
    """

    renamed_options: ClassVar = {"key": "group_key"}

    new_records = True

    def __init__(
        self,
        group_key: Keys,
        output_key: str = "records",
        *,
        max_per_group: PositiveInt | None = None,
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._columns = list(map(FieldKey, key_list("group_key", group_key)))
        self._output_key, self._most = output_key, max_per_group
        self._max_bytes = max_memory_mb << 20

    def forward_batch_input(self, records: Iterable[Record]) -> Iterator[Record]:
        with TemporaryDirectory(prefix="dataops-group-") as folder:
            by_group = ExternalSort(Path(folder), self._max_bytes // 2, name="group")
            for record in records:
                by_group.add(self._digest_of(record), encode(record))
            by_first = ExternalSort(Path(folder), self._max_bytes // 2, name="first")
            for _, entries in groupby(by_group, attrgetter("key")):
                kept = list(islice(entries, self._most))
                lines = b",".join(entry.data for entry in kept)
                by_first.add(kept[0].number.to_bytes(8), b"[%b]" % lines)
            for group in by_first.data():
                yield self._grouped(group)

    def __dataops_regrouping__(self, sizes: Sequence[int]) -> GroupInPartitions:
        return GroupInPartitions(self._max_bytes, self._digest_of, self._grouped, self._most)

    def _digest_of(self, record: Record) -> bytes:
        values = [column.present(record) for column in self._columns]
        return xxhash.xxh3_128_digest(canonical(values))

    def _grouped(self, group: bytes) -> Record:
        records: list[Record] = orjson.loads(group)
        columns = {column.name: column.value(records[0]) for column in self._columns}
        return {**columns, self._output_key: records}


SORTED: Final = frozenset({str, int, float, bool, type(None)})


def sort_value(column: FieldKey, record: Record) -> str | float | None:
    """Return the value in a column to sort by; ``None`` if it is missing."""
    value = column.value(record)
    if type(value) in SORTED:
        return value  # type: ignore[no-any-return]
    raise not_sorted(column, value)


def not_sorted(column: FieldKey, value: object) -> TypeError:
    """Return the error for a value that is neither a number nor a text."""
    msg = f"{column.name!r} has a {type(value).__name__}: {value!r:.60}; sort by numbers or texts"
    return TypeError(msg)
