"""Make the screenshots of the documentation: ``python docs/screenshots.py``.

It takes a minute and needs Chromium.
The script kills a run of ``reviews_pipeline.py``, re-executes it from failure in a browser, and
writes PNG files to ``docs/images``.
"""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.end_to_end.browser import OPTIONS, Browser  # noqa: E402
from tests.end_to_end.dagster_server import DagsterServer  # noqa: E402

SECONDS = 0.4  # per answer of the model
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
WIDTH = 1360


def main() -> None:
    """Make all of them."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        server = DagsterServer(Path(folder) / "dagster", pipelines=("reviews",), folder=HERE)
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        try:
            page = chromium.new_page(viewport={"width": WIDTH, "height": 720})
            photograph(Browser(page, server, "reviews", HERE / "images"), page)
        finally:
            chromium.close()
            server.stop()


def photograph(browser: Browser, page: Page) -> None:
    """Kill a run, resume it, and take the pictures."""
    server = browser.server
    server.pace("graded", SECONDS)
    browser.open_lineage("ranked")
    page.get_by_text("Hide navigation").click()
    killed = browser.click("Materialize all")
    call = server.wait_for_calls("graded", 900)[-1]
    os.kill(call.process, signal.SIGKILL)
    browser.open_run(killed, "RUN_FAILURE")
    again = browser.reexecute("From failure")
    page.get_by_text("records/s").nth(1).wait_for()
    browser.open_log(again, "graded:", "resuming:")  # those lines alone
    page.get_by_text("records/s").nth(2).wait_for()
    browser.photograph("run", 640, WIDTH)

    server.finish(again, "SUCCESS")
    browser.open_lineage("ranked")
    page.get_by_text("Materialized", exact=True).nth(5).wait_for()
    browser.photograph("lineage", 640, WIDTH)
    browser.open_asset("graded", "Row count")
    page.get_by_text("Description", exact=True).first.click()  # to make room
    browser.photograph("asset", 1100, WIDTH)


if __name__ == "__main__":
    main()
