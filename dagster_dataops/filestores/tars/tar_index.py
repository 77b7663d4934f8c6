"""`TarIndex`: the samples of tar shards by key and by number, in a sqlite file of the cache folder.

Each shard is scanned once: its scan is a file of its own, so an index that is killed continues with
the next shard, and new shards are added without reading the old ones.
"""

import contextlib
import os
import sqlite3
import threading
import weakref
from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson
from typing_extensions import override

from dagster_dataops.errors import DuplicateKeyError
from dagster_dataops.filestores.tars.index_cache import (
    cache_folder,
    locked,
    mark_used,
    publish,
    sweep,
)
from dagster_dataops.filestores.tars.shard_scan import (
    MAX_ROWS,
    Parts,
    ScannedShard,
    Shard,
    scan,
)
from dagster_dataops.hashing.values import digest

_VERSION: Final = 2
_START_BYTES: Final = 8
_TABLES: Final = """
    CREATE TABLE shards (number INTEGER PRIMARY KEY, starts BLOB, error TEXT);
    CREATE TABLE incoming (key TEXT, shard INTEGER, at INTEGER, parts BLOB);
    CREATE TABLE samples (key TEXT PRIMARY KEY, shard INTEGER, at INTEGER, parts BLOB)
        WITHOUT ROWID;
"""
_SORTED: Final = {
    "error": "INSERT INTO samples SELECT * FROM incoming ORDER BY key",
    "first": "INSERT OR IGNORE INTO samples SELECT * FROM incoming ORDER BY key, rowid",
    "last": "INSERT OR IGNORE INTO samples SELECT * FROM incoming ORDER BY key, rowid DESC",
}
_DROPPED: Final = """
    CREATE TABLE dropped AS SELECT incoming.shard, incoming.at
    FROM incoming JOIN samples USING (key)
    WHERE incoming.shard != samples.shard OR incoming.at != samples.at
"""
_NONE_DROPPED: Final = "CREATE TABLE dropped (shard INTEGER, at INTEGER)"
_TWICE: Final = """
    SELECT key, min(shard), max(shard) FROM incoming GROUP BY key HAVING count(*) > 1
    ORDER BY max(rowid) LIMIT 1
"""


def scanned(shard: Shard, dataset: str, duplicates: str) -> ScannedShard:
    """Return the samples of a shard, from the cache if its file did not change.

    Raises:
        DuplicateKeyError: A sample has a part twice.
        StreamSourceError: The shard cannot be opened.
    """
    version = shard.location.stamp() or shard.location.identity()
    name = digest([_VERSION, dataset, shard.location.path, version, duplicates])
    path = cache_folder() / f"{name}.json"
    try:
        known = ScannedShard(*orjson.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, IndexError):
        found = scan(shard, dataset, duplicates)
    else:
        mark_used(path)
        return known
    data = orjson.dumps([*found])
    publish(path, lambda draft: _write(draft, data))
    return found


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


class SqliteFile:
    """A read-only sqlite file, with one connection for each thread and process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        weakref.finalize(self, os.close, locked(path))

    def query(self, text: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Run a query."""
        local = self._local
        try:
            if local.process == os.getpid():
                return local.execute(text, values)  # type: ignore[no-any-return]
        except AttributeError:  # the first query of the thread
            pass
        local.connection = sqlite3.connect(f"{self.path.as_uri()}?immutable=1", uri=True)
        local.process, local.execute = os.getpid(), local.connection.execute
        return local.execute(text, values)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the connection of this thread."""
        if getattr(self._local, "process", None) == os.getpid():
            self._local.connection.close()
        self._local = threading.local()

    @override
    def __reduce__(self) -> Any:
        return SqliteFile, (self.path,)


Place: TypeAlias = tuple[Shard, int, Parts]
"""Shard, first byte and parts of a sample."""


class TarIndex:
    """The samples of some shards. Building it scans the shards that are not in the cache.

    Args:
        dataset: The path of the dataset.
        shards: The shards, in order.
        duplicates: ``error``, or which of two samples with one key to keep: ``first`` or ``last``.

    Raises:
        DuplicateKeyError: A key, or a part of a sample, occurs twice.
        StreamSourceError: A shard cannot be opened.
    """

    def __init__(self, dataset: str, shards: Sequence[Shard], duplicates: str = "error") -> None:
        self.dataset, self.shards, self.duplicates = dataset, shards, duplicates
        versions = [one.location.stamp() or one.location.identity() for one in shards]
        places = [one.location.path for one in shards]
        self._stamps = dict(zip(places, versions, strict=True))
        self.version = digest([_VERSION, dataset, places, versions, duplicates])
        path = cache_folder() / f"{self.version}.sqlite"
        if not path.exists():
            sweep(path.parent)
            publish(path, self._build)
        mark_used(path)
        self._file = SqliteFile(path)
        self._starts: dict[int, array[int]] = {}

    def _build(self, draft: Path) -> None:
        with contextlib.closing(sqlite3.connect(draft)) as connection:
            connection.executescript(
                f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_TABLES}"
            )
            for number, shard in enumerate(self.shards):
                found = scanned(shard, self.dataset, self.duplicates)
                connection.executemany(
                    "INSERT INTO incoming VALUES (?, ?, ?, ?)",
                    [(key, number, at, orjson.dumps(parts)) for key, at, parts in found.rows()],
                )
                starts = array("Q", found.starts).tobytes()
                error = orjson.dumps(found.error).decode()
                connection.execute("INSERT INTO shards VALUES (?, ?, ?)", (number, starts, error))
            self._sort(connection)
            connection.commit()

    def _sort(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute(_SORTED[self.duplicates])
        except sqlite3.IntegrityError:
            key, first, second = connection.execute(_TWICE).fetchone()
            names = self.shards[first].name, self.shards[second].name
            raise DuplicateKeyError(self.dataset, key, *names) from None
        connection.execute(_DROPPED if self.duplicates != "error" else _NONE_DROPPED)
        connection.execute("DROP TABLE incoming")

    def starts(self, number: int) -> "array[int]":
        """Return the first byte of each sample of a shard, then the first byte behind the last."""
        known = self._starts.get(number)
        if known is None:
            query = "SELECT starts FROM shards WHERE number = ?"
            known = self._starts[number] = array("Q")
            known.frombytes(self._file.query(query, (number,)).fetchone()[0])
        return known

    def is_current(self, shard: Shard) -> bool:
        """Return whether a local shard is the file that was indexed."""
        stamp = shard.location.stamp()
        return stamp is not None and stamp == self._stamps.get(shard.location.path)

    def dropped(self) -> dict[int, frozenset[int]]:
        """Return the first bytes of the samples that are left out as duplicates, by shard."""
        found: dict[int, set[int]] = {}
        for shard, at in self._file.query("SELECT shard, at FROM dropped"):
            found.setdefault(shard, set()).add(at)
        return {shard: frozenset(starts) for shard, starts in found.items()}

    def find(self, key: str) -> Place | None:
        """Return shard, first byte and parts of a sample; ``None`` if there is none."""
        if self._held is not None:
            return self._held.get(key)
        query = "SELECT shard, at, parts FROM samples WHERE key = ?"
        row = self._file.query(query, (key,)).fetchone()
        return None if row is None else (self.shards[row[0]], row[1], orjson.loads(row[2]))

    @cached_property
    def _held(self) -> dict[str, Place] | None:
        """The samples of a small dataset by key; finding one takes a tenth of a query."""
        (size,) = self._file.query("SELECT sum(length(starts)) FROM shards").fetchone()
        if self.duplicates != "error" or (size or 0) > MAX_ROWS * _START_BYTES:
            return None
        held: dict[str, Place] = {}
        for number, shard in enumerate(self.shards):
            if not self.is_current(shard):
                return None
            found = self.rows(number)
            places = zip(repeat(shard), found.starts, found.parts(), strict=False)
            held.update(zip(found.keys, places, strict=True))
        return held

    @override
    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_held"}

    def names(self) -> Iterator[str]:
        """Yield the names of all files, sorted by key."""
        for key, parts in self._file.query("SELECT key, parts FROM samples ORDER BY key"):
            for part in orjson.loads(parts):
                yield f"{key}.{part}"

    def count(self) -> int:
        """Return the number of samples."""
        found: int = self._file.query("SELECT count(*) FROM samples").fetchone()[0]
        return found

    def rows(self, number: int) -> ScannedShard:
        """Return the samples of a shard, with those that are left out."""
        return scanned(self.shards[number], self.dataset, self.duplicates)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
