"""One server for all end-to-end tests, and the rows that share it."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.dagster_server import LOCATION, DagsterServer
from tests.end_to_end.rows import Rows


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DagsterServer]:
    """A ``dagster dev`` that runs as long as the tests do."""
    started = DagsterServer(
        tmp_path_factory.mktemp("dagster") / "home", locations=(LOCATION, "browsed", "partitioned")
    )
    try:
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="session")
def rows(request: pytest.FixtureRequest, server: DagsterServer) -> Iterator[Rows]:
    """The rows of the failure table, all started when the first is asked for."""
    started = Rows(request.session.items, server)
    try:
        yield started
    finally:
        started.close()
