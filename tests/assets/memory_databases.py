"""Databases of Dagster in memory that cost little to make: every test of an asset makes two."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as db
from dagster._core.storage.event_log import in_memory as events
from dagster._core.storage.runs import in_memory as runs

_STORAGES = ((events, "SqlEventLogStorageMetadata"), (runs, "RunStorageSqlMetadata"))


class _Storage:
    """Replaces what a storage in memory makes anew for each database.

    Args:
        module: The module of the storage.
        metadata: The name of its tables in the module.
    """

    def __init__(self, module: ModuleType, metadata: str) -> None:
        self._module = module
        self._create_engine, self._stamp = module.create_engine, module.stamp_alembic_rev
        self._tables = getattr(module, metadata)
        self._script = ""
        self._first: db.Engine | None = None

    def create_engine(self, *arguments: Any, **options: Any) -> db.Engine:
        """Make an engine that has the compiled statements of all earlier ones."""
        engine = self._create_engine(*arguments, **options)
        if self._first is None:
            self._first = engine
        engine.dialect, engine._compiled_cache = self._first.dialect, self._first._compiled_cache
        return engine

    def create_all(self, connection: db.Connection) -> None:
        """Make the tables as those of the first database."""
        if self._script:
            connection.connection.dbapi_connection.executescript(self._script)
        else:
            self._tables.create_all(connection)

    def stamp(self, configuration: Any, connection: db.Connection) -> None:
        """Note the revision of the first database, which the script notes in each other one."""
        if not self._script:
            self._stamp(configuration, connection)
            self._script = "\n".join(connection.connection.dbapi_connection.iterdump())


@contextmanager
def prepared_databases() -> Iterator[None]:
    """Make tables from a script, and compile each statement of SQL once."""
    with pytest.MonkeyPatch.context() as patch:
        for module, metadata in _STORAGES:
            storage = _Storage(module, metadata)
            patch.setattr(module, metadata, SimpleNamespace(create_all=storage.create_all))
            patch.setattr(module, "stamp_alembic_rev", storage.stamp)
            patch.setattr(module, "create_engine", storage.create_engine)
        yield
