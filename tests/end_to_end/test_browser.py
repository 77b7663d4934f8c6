"""What a person sees: lineage, a run under way, an asset with its numbers, the launchpad.

Screenshots are left in tests/artifacts.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.dagster_server import LOCATION, DagsterServer

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARTIFACTS = Path(__file__).parents[1] / "artifacts"
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LAUNCH = "mutation LaunchPipelineExecution"

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(
    not Path(CHROMIUM).exists(), reason=f"there is no Chromium at {CHROMIUM}"
)


class Browser:
    """One page of a browser, and the server it looks at."""

    def __init__(self, page: Any, server: DagsterServer) -> None:
        self.page = page
        self.server = server

    def open(self, path: str, text: str) -> None:
        """Open a page and wait until ``text`` is on it."""
        self.page.goto(f"{self.server.url}{path}")
        self.see(text)

    def open_lineage(self) -> None:
        group = f"/locations/__repository__@{LOCATION}/asset-groups/browsed/lineage"
        self.open(group, "judged")
        self.page.wait_for_load_state("networkidle")
        playwright.expect(self.materialize).to_be_enabled()

    @property
    def materialize(self) -> Any:
        return self.page.get_by_role("button", name=re.compile("Materialize")).first

    def see(self, text: str) -> None:
        self.page.get_by_text(text).first.wait_for()

    def photograph(self, name: str) -> None:
        self.page.wait_for_load_state("networkidle")
        self.page.screenshot(path=ARTIFACTS / f"{name}.png")


@pytest.fixture(scope="module")
def browser(server: DagsterServer) -> Iterator[Browser]:
    ARTIFACTS.mkdir(exist_ok=True)
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        page = chromium.new_page(viewport={"width": 1500, "height": 1000})
        page.set_default_timeout(30_000)
        yield Browser(page, server)
        chromium.close()


@pytest.fixture(scope="module")
def run(browser: Browser) -> str:
    """A run of everything, launched by a click, as slow as four records in 50 ms."""
    browser.server.pace("browsed", 0.05)
    browser.open_lineage()
    launches = browser.page.expect_response(lambda r: LAUNCH in (r.request.post_data or ""))
    with launches as launched:
        browser.materialize.click()
    answer = launched.value.json()["data"]["launchPipelineExecution"]
    run: str = answer["run"]["id"]
    return run


def test_a_run_shows_its_progress_while_it_goes_on(browser: Browser, run: str) -> None:
    browser.open(f"/runs/{run}", "records/s")
    assert browser.server.status(run) == "STARTED"
    browser.photograph("run_under_way")


def test_a_finished_run_shows_what_became_of_it(browser: Browser, run: str) -> None:
    browser.open(f"/runs/{run}", "RUN_SUCCESS")
    browser.photograph("run_finished")


@pytest.mark.usefixtures("run")
def test_the_lineage_shows_every_node_as_materialized(browser: Browser, run: str) -> None:
    browser.server.finish(run, "SUCCESS")
    browser.open_lineage()
    browser.page.get_by_text("Materialized", exact=True).nth(1).wait_for()
    for name in ("texts", "loud", "judged"):
        browser.see(name)
    browser.photograph("lineage")


def test_an_asset_shows_its_rows_its_size_and_what_failed(browser: Browser, run: str) -> None:
    browser.server.finish(run, "SUCCESS")
    browser.open("/assets/browsed/judged", "Row count")
    for text in ("rows_failed", "ValueError", "<b>no</b> | `answer` to *1*, see [this]"):
        browser.see(text)
    browser.photograph("asset")
    browser.page.get_by_text("ValueError").first.scroll_into_view_if_needed()
    browser.photograph("asset_errors")


def test_the_launchpad_shows_the_options_of_every_operator(browser: Browser) -> None:
    browser.open_lineage()
    browser.materialize.click(modifiers=["Shift"])
    for text in ("browsed__loud", "params", "concurrency_mode", "resume"):
        browser.see(text)
    browser.photograph("launchpad")
