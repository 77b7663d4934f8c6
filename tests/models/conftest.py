"""Fixtures of the tests of models."""

from collections.abc import Iterator

import pytest

from tests.models.running_server import RunningServer, running_server


@pytest.fixture(scope="session")
def one_server() -> Iterator[RunningServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def server(one_server: RunningServer) -> RunningServer:
    """Return a server that has counted nothing."""
    one_server.reset()
    return one_server
