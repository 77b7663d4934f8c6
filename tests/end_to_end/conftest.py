"""One server for all end-to-end tests."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.dagster_server import DagsterServer


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DagsterServer]:
    """A ``dagster dev`` that runs as long as the tests do."""
    started = DagsterServer(tmp_path_factory.mktemp("dagster") / "home")
    try:
        yield started
    finally:
        started.stop()
