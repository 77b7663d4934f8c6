"""Calls of a model in a browser: a killed step, a terminated run, and the page of the asset.

Screenshots are left in tests/artifacts.
"""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.browser import OPTIONS, Browser
from tests.end_to_end.dagster_server import HANG_SECONDS, RECORDS, DagsterServer, until
from tests.models.running_server import RunningServer

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARTIFACTS = Path(__file__).parents[1] / "artifacts"
IN_FLIGHT = 100
COSTS = re.compile(r"\$[\d.]+ so far, \$[\d.]+ expected")

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(
    not Path(CHROMIUM).exists(), reason=f"there is no Chromium at {CHROMIUM}"
)


@pytest.fixture
def browser(server: DagsterServer) -> Iterator[Browser]:
    ARTIFACTS.mkdir(exist_ok=True)
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        page = chromium.new_page(viewport={"width": 1500, "height": 1000})
        page.set_default_timeout(1000 * HANG_SECONDS)
        yield Browser(page, server, "models", ARTIFACTS)
        chromium.close()


def test_a_kill_costs_the_calls_in_flight_and_a_termination_none(
    browser: Browser, model: RunningServer
) -> None:
    server = browser.server
    browser.open_asset("explained", "Materialize")
    run = browser.click("Materialize")
    until(lambda: model.stats()["answered"] >= 1.5 * IN_FLIGHT, "answers of the model")
    os.kill(server.calls("models")[-1].process, signal.SIGKILL)
    browser.open_run(run, "RUN_FAILURE")
    browser.photograph("models_killed")
    until(lambda: not model.stats()["in_flight"], "the end of the calls in flight")
    repeatable = model.stats()["answered"]

    again = browser.reexecute("From failure")
    until(lambda: model.stats()["answered"] >= repeatable + IN_FLIGHT, "further answers")
    until(lambda: model.stats()["in_flight"] == IN_FLIGHT, "calls in flight")
    paid_twice = model.stats()["answered"] - model.stats()["distinct"]
    assert paid_twice <= IN_FLIGHT
    server.terminate(again)
    server.finish(again, "CANCELED")
    browser.open_run(again, "RUN_CANCELED")
    browser.photograph("models_terminated")

    last = browser.reexecute("From failure")
    browser.open_log(last, "explained:", "resuming:")
    browser.see(COSTS)
    browser.photograph("models_resumed")
    server.finish(last, "SUCCESS")
    stats = model.stats()
    assert stats["distinct"] == RECORDS
    assert stats["answered"] - stats["distinct"] <= IN_FLIGHT  # those of the kill alone

    browser.open_asset("explained", "Row count")
    assert browser.value("dagster_dataops/calls") == str(RECORDS)
    browser.photograph("models_asset", height=2300)
    assert browser.clipped() == []
    browser.button("Plots").click()
    browser.see("dagster_dataops/cost")
    browser.photograph("models_plots", height=1600)
