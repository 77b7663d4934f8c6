"""Rows of the failure table. Several run at once on one server, because most of them wait.

A test marked by `row` is started when one of the workers is free, at the first use of the server;
pytest then waits for each in turn. Each test has separate pipelines, so that none disturbs another.
"""

import inspect
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final

import pytest

from tests.end_to_end.dagster_server import DagsterServer

_AT_ONCE: Final = 6
_SECONDS: Final = 7200.0  # catches hangs; a row also waits for earlier rows


def row(test: Callable[..., None]) -> Callable[..., None]:
    """Mark ``test(server, record_property, ...)``; the arguments are parameters."""

    def waits(rows: "Rows", request: pytest.FixtureRequest, **_: Any) -> None:
        rows.result(request.node.nodeid)

    given = list(inspect.signature(test).parameters.values())[2:]
    kept = list(inspect.signature(waits).parameters.values())[:2]
    named = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in given]
    waits.__signature__ = inspect.Signature([*kept, *named])  # type: ignore[attr-defined]
    waits.__name__, waits.__doc__, waits.__module__ = test.__name__, test.__doc__, test.__module__
    waits.pytestmark = list(getattr(test, "pytestmark", ()))  # type: ignore[attr-defined]
    waits.row = test  # type: ignore[attr-defined]
    return pytest.mark.timeout(_SECONDS)(waits)


def _waits_for_daemon(item: pytest.Item) -> bool:
    """Whether a test waits for Dagster's daemon, which checks backfills only every 30 s."""
    return item.path.name == "test_partitions.py"


class Rows:
    """The marked tests of a session, each run in a thread.

    Args:
        items: The tests that pytest runs.
        server: The server that they share.
    """

    def __init__(self, items: list[pytest.Item], server: DagsterServer) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE)
        self._futures: dict[str, Future[None]] = {}
        for item in sorted(items, key=_waits_for_daemon, reverse=True):
            if isinstance(item, pytest.Function) and hasattr(item.function, "row"):
                self._futures[item.nodeid] = self._pool.submit(self._run, item, server)

    @staticmethod
    def _run(item: pytest.Function, server: DagsterServer) -> None:
        params = item.callspec.params if hasattr(item, "callspec") else {}

        def record(name: str, value: object) -> None:
            item.user_properties.append((name, value))

        item.function.row(server, record, **params)  # type: ignore[attr-defined]

    def result(self, nodeid: str) -> None:
        """Wait for a test, and raise its exception."""
        self._futures[nodeid].result()

    def wait(self) -> None:
        """Wait for all."""
        wait(self._futures.values())

    def close(self) -> None:
        """Start no more tests, and wait for the running ones."""
        self._pool.shutdown(cancel_futures=True)
