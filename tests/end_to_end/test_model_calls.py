"""Calls of a model in a browser: a killed step, a terminated run, and the page of the asset.

Screenshots are left in tests/artifacts.
"""

import os
import re
import signal

from tests.end_to_end.browser import Browser
from tests.end_to_end.dagster_server import RECORDS, until
from tests.models.running_server import RunningServer

GROUP = "models"
IN_FLIGHT = 100
COSTS = re.compile(r"\$[\d.]+ so far, \$[\d.]+ expected")


def test_a_kill_costs_the_calls_in_flight_and_a_termination_none(
    browser: Browser, model: RunningServer
) -> None:
    server = browser.server
    browser.open_asset("explained", "Materialize")
    run = browser.click("Materialize")
    until(lambda: model.stats()["answered"] >= 1.5 * IN_FLIGHT, "answers of the model")
    os.kill(server.calls("models")[-1].process, signal.SIGKILL)
    server.finish(run, "FAILURE")
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
    browser.leave()
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
