"""One server for all end-to-end tests, and the rows that share it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.browser import ARTIFACTS, CHROMIUM, OPTIONS, WITHOUT_ANIMATIONS, Browser
from tests.end_to_end.dagster_server import HANG_SECONDS, SLOW, DagsterServer
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
def served(
    tmp_path_factory: pytest.TempPathFactory, model: RunningServer
) -> Iterator[DagsterServer]:
    """A ``dagster dev`` that runs as long as the tests do."""
    started = DagsterServer(
        tmp_path_factory.mktemp("dagster") / "home",
        pipelines=(SLOW, "browsed", "models", "partitioned", "reported"),
        environment={"DATAOPS_LLM_BASE_URL": model.address},
        warm=True,
    )
    try:
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="session")
def rows(request: pytest.FixtureRequest, served: DagsterServer) -> Iterator[Rows]:
    """Return the rows of the failure table; the first use of the server starts all of them."""
    started = Rows(request.session.items, served)
    try:
        yield started
    finally:
        started.close()


@pytest.fixture(scope="session")
def server(served: DagsterServer, rows: Rows) -> DagsterServer:
    """Return the server; other tests use it while the rows of the failure table wait."""
    return served


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A page of Chromium, for one module: while it is open, other tests cannot use asyncio.

    All modules have one profile, which keeps the compiled code of Dagster's pages.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no Chromium at {CHROMIUM}")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch_persistent_context(
            tmp_path_factory.getbasetemp() / "chromium",
            executable_path=CHROMIUM,
            args=OPTIONS,
            viewport={"width": 1500, "height": 1000},
        )
        chromium.set_default_timeout(1000 * HANG_SECONDS)
        chromium.add_init_script(WITHOUT_ANIMATIONS)
        yield chromium.pages[0]
        chromium.close()


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest, page: Any, server: DagsterServer) -> Browser:
    """A browser that shows the group of assets of the module."""
    ARTIFACTS.mkdir(exist_ok=True)
    return Browser(page, server, request.module.GROUP, ARTIFACTS)
