"""``join.Lookup``: add the columns of a table; ``join.Table``: a table on disk."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from dagster_dataops.datasets.artefact_facts import FORMAT, read_facts
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.field_keys import FieldKey, Keys, key_list
from dagster_dataops.library.given_records import Given, given_records
from dagster_dataops.library.join.join_operator import JoinOperator, key_digest
from dagster_dataops.library.join.merging import join
from dagster_dataops.library.sorting.keyed_lines import KeyedLines
from dagster_dataops.library.sorting.sorted_keys import SortedKeys, mapped_file, write_sorted
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record, decode_own, encode

_ROWS: Final = "rows.jsonl"
_KEYS: Final = "keys"
_FACTS: Final = "table.json"  # tables of version 0.9 have none
_FORMAT: Final = 1  # of the files
_DIGEST_BYTES: Final = 16
_KEY_BYTES: Final = 24  # a digest and the position of the row


class Table(join):
    """Build a table for ``join.Lookup``, as an artefact that is read from disk.

    ``on`` is the key column, or several; records whose key is missing or ``null`` are left out.
    Building uses up to ``max_memory_mb`` MB. The table has the size of the records and 24 bytes for
    each.

    Args:
        on: Key column, or several.
        max_memory_mb: Memory in MB before files are used.
    """

    def __init__(self, on: Keys, *, max_memory_mb: PositiveInt = 256, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._columns = list(map(FieldKey, key_list("on", on)))
        self._max_bytes = max_memory_mb << 20

    def build(self, records: Iterator[Record], folder: Path) -> None:
        path = folder / _ROWS
        with storage(path, "write"), path.open("wb") as file:

            def keys() -> Iterator[bytes]:
                for record in records:
                    key = key_digest(self._columns, record)
                    if key is not None:
                        yield key + file.tell().to_bytes(_KEY_BYTES - _DIGEST_BYTES)
                        file.write(encode(record))

            write_sorted(keys(), _KEY_BYTES, folder / _KEYS, self._max_bytes)
        facts = folder / _FACTS
        with storage(facts, "write"):
            facts.write_text(json.dumps({FORMAT: _FORMAT}))


class Lookup(JoinOperator, join):
    """Add the columns of a table to the records with its keys.

    Reads ``on``, and writes ``columns`` of the table. ``table`` is a list of records, the path of a
    jsonl file, or an artefact of ``join.Table`` with the same key. Each process holds the first two
    in memory, up to ``max_memory_mb`` MB: the size of the file and 24 bytes for each row. An
    artefact is read from disk. The content of the file counts: if it is replaced, the result is
    made again.

    ``on``, ``right_on`` (the key of the table), ``duplicates``, ``columns`` and ``suffix`` as in
    `Merge`, with the table as the right side. ``how="left"`` keeps every record, ``"inner"`` and
    ``"semi"`` drop records without a match (reason ``no_match``), ``"anti"`` those with one
    (``match``); ``"semi"`` and ``"anti"`` add nothing.

    Other than `Merge`, it processes the records in parallel, with a checkpoint.

    Args:
        table: Records, the path of a jsonl file, or an artefact of ``join.Table``.
        right_on: Key of the table; ``None`` for the same names.
        how: Which records stay: ``left``, ``inner``, ``semi`` or ``anti``.
        max_memory_mb: Most MB of a table that each process holds in memory.
    """

    def __init__(self, table: Given, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self._how == "outer":
            msg = "how='outer' needs all records of both sides; use join.Merge"
            raise DefinitionError(msg)
        folder = Path(table) if isinstance(table, (str, os.PathLike)) else None
        self._rows: _HeldRows | _StoredRows
        if folder is not None and folder.is_dir():
            self._rows = _StoredRows(folder)
        else:
            added = [] if self._columns is None else list(map(FieldKey, self._columns))
            self._rows = _HeldRows(table, self._right, self._max_bytes, added)

    def forward(self, record: Record) -> list[Record] | Drop:
        key = key_digest(self._left, record)
        lines = [] if key is None else self._rows.of(key)
        joined = self._joined(record, list(map(decode_own, lines)))
        return joined or Drop("match" if lines else "no_match")


class _HeldRows:
    """The rows of a table in memory, by the digests of their keys."""

    def __init__(
        self, table: Given, key: Sequence[FieldKey], max_bytes: int, added: Sequence[FieldKey]
    ) -> None:
        self._rows = KeyedLines()
        record: Record = {}
        for record in given_records("table", table, added):
            digest = key_digest(key, record)
            if digest is None:
                continue
            self._rows.add(digest, encode(record))
            if self._rows.size > max_bytes:
                msg = (
                    f"the table takes more than {max_bytes >> 20} MB of memory; make it an "
                    "artefact by join.Table, use join.Merge, or raise max_memory_mb"
                )
                raise DefinitionError(msg)
        if record and not self._rows.size:
            names = ", ".join(column.name for column in key)
            msg = (
                f"no record of the table has the key {names}; the last one has "
                f"{', '.join(record)}; give the names by right_on"
            )
            raise DefinitionError(msg)
        self._rows.sort()

    def of(self, key: bytes) -> list[bytes]:
        return list(map(self._rows.line, self._rows.places(key)))


class _StoredRows:
    """The rows of an artefact of ``join.Table``. Pickled as its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if (folder / _FACTS).exists():
            read_facts(folder / _FACTS, "join.Table", _FORMAT)
        self._keys, self._rows = SortedKeys(folder / _KEYS, _KEY_BYTES), mapped_file(folder / _ROWS)

    def of(self, key: bytes) -> list[bytes]:
        return [self._line(int.from_bytes(entry[-8:])) for entry in self._keys.starting_with(key)]

    def _line(self, start: int) -> bytes:
        return self._rows[start : self._rows.find(b"\n", start)]

    @override
    def __reduce__(self) -> Any:
        return _StoredRows, (self._folder,)
