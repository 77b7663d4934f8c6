"""Databases of Dagster in memory that cost little to make: every test of an asset makes two."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import pytest
import sqlalchemy as db
from dagster._core.storage.event_log import in_memory as events
from dagster._core.storage.runs import in_memory as runs

_Connect: TypeAlias = Callable[[Any], AbstractContextManager[db.Connection]]

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
        engine.made_in = threading.get_ident()  # the only thread that may use its connection
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


def _with_one_connection(connect: _Connect) -> _Connect:
    """Return a method that gives the connection which a storage holds, where it is free.

    The storage connects anew for each statement.
    """

    @contextmanager
    def connected(storage: Any) -> Iterator[db.Connection]:
        held = storage._held_conn
        if storage._engine.made_in != threading.get_ident() or held.in_transaction():
            with connect(storage) as connection:
                yield connection
            return
        with getattr(storage, "_db_lock", nullcontext()), held.begin():
            if not hasattr(held, "prepared"):
                held.execute(db.text("PRAGMA foreign_keys=ON;")).close()
                held.prepared = True
            yield held

    return connected


@contextmanager
def prepared_databases() -> Iterator[None]:
    """Make tables from a script, compile each statement of SQL once, and connect once."""
    with pytest.MonkeyPatch.context() as patch:
        for module, metadata in _STORAGES:
            storage = _Storage(module, metadata)
            patch.setattr(module, metadata, SimpleNamespace(create_all=storage.create_all))
            patch.setattr(module, "stamp_alembic_rev", storage.stamp)
            patch.setattr(module, "create_engine", storage.create_engine)
        for kind, method in (
            (events.InMemoryEventLogStorage, "_connect"),
            (runs.InMemoryRunStorage, "connect"),
        ):
            patch.setattr(kind, method, _with_one_connection(getattr(kind, method)))
        yield
