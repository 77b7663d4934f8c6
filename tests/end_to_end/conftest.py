"""One server for all end-to-end tests, and the rows that share it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.dagster_server import LOCATION, DagsterServer
from tests.end_to_end.rows import Rows
from tests.models.running_server import RunningServer, running_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder as slow."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def model() -> Iterator[RunningServer]:
    """A server whose model answers after 5 seconds."""
    with running_server("--latency", "5") as started:
        yield started


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory, model: RunningServer
) -> Iterator[DagsterServer]:
    """A ``dagster dev`` that runs as long as the tests do."""
    started = DagsterServer(
        tmp_path_factory.mktemp("dagster") / "home",
        locations=(LOCATION, "browsed", "models", "partitioned", "reported"),
        environment={"DATAOPS_LLM_BASE_URL": model.address},
    )
    try:
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="session")
def rows(request: pytest.FixtureRequest, server: DagsterServer) -> Iterator[Rows]:
    """Return the rows of the failure table; the first use starts all of them."""
    started = Rows(request.session.items, server)
    try:
        yield started
    finally:
        started.close()
