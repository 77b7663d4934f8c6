"""OutcomeIndex: find outcomes by the digests of their input. It is on disk, not in memory."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from dagster_dataops.checkpoints.journal.stored_outcomes import StoredOutcome
from dagster_dataops.errors import StorageError

_SETTINGS: Final = {"journal_mode": "OFF", "synchronous": "OFF"}  # not read after a crash
_COLUMNS: Final = "source, segment, place, size, emitted, checksum"


class OutcomeIndex:
    """Outcomes of several sources, for as long as the ``with`` block lasts.

    Args:
        path: A new file, deleted at the end.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._storage("create the index of outcomes"):
            self._database = sqlite3.connect(path, isolation_level=None)
            for name, value in _SETTINGS.items():
                self._database.execute(f"PRAGMA {name} = {value}")
            table = f"CREATE TABLE outcome (digest BLOB PRIMARY KEY, {_COLUMNS}) WITHOUT ROWID"
            self._database.execute(table)

    def add(self, source: int, outcomes: Iterable[StoredOutcome]) -> None:
        """Add the outcomes of a source. An outcome with a known digest is ignored.

        Raises:
            StorageError: The disk refuses.
        """
        rows = ((one.digest, source, *one[1:]) for one in outcomes)
        with self._storage("write the index of outcomes"):
            self._database.execute("BEGIN")
            insert = "INSERT OR IGNORE INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?)"
            self._database.executemany(insert, rows)
            self._database.execute("COMMIT")

    def find(self, digest: bytes) -> tuple[int, StoredOutcome] | None:
        """Return the source and the outcome with this digest; ``None`` if there is none.

        Raises:
            StorageError: The disk refuses.
        """
        select = f"SELECT {_COLUMNS} FROM outcome WHERE digest = ?"  # noqa: S608 - of constants
        try:
            row = self._database.execute(select, (digest,)).fetchone()
        except sqlite3.Error as error:
            raise self._refused("read the index of outcomes", error) from error
        return None if row is None else (row[0], StoredOutcome(digest, *row[1:]))

    @contextmanager
    def _storage(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._refused(action, error) from error

    def _refused(self, action: str, error: sqlite3.Error) -> StorageError:
        return StorageError(str(self._path), action, str(error))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()
        with suppress(OSError):  # it goes with the checkpoint
            self._path.unlink(missing_ok=True)
