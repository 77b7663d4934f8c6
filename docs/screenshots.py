"""Make the screenshots of the documentation: ``python docs/screenshots.py``.

It takes a minute and needs Chromium.
The script kills a run of ``reviews_pipeline.py``, re-executes it from failure in a browser, and
writes PNG files to ``docs/images``.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from dagster_dataops import config, data, pipeline, report  # noqa: E402
from dagster_dataops.errors import RunWaitingError  # noqa: E402
from tests.end_to_end.browser import OPTIONS, Browser  # noqa: E402
from tests.end_to_end.dagster_server import DagsterServer  # noqa: E402

SECONDS = 0.4  # per answer of the model
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
WIDTH = 1360
_SET_TEXT = "text => document.querySelector('.CodeMirror').CodeMirror.setValue(text)"


def main() -> None:
    """Make all of them."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        server = DagsterServer(Path(folder) / "dagster", pipelines=("reviews",), folder=HERE)
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        try:
            page = chromium.new_page(viewport={"width": WIDTH, "height": 720})
            photograph(Browser(page, server, "reviews", HERE / "images"), page)
            photograph_view(Path(folder) / "viewed", page)
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
    photograph_changes(browser, page)


def photograph_changes(browser: Browser, page: Page) -> None:
    """Change an option in the launchpad, and take its picture and that of the plots."""
    server = browser.server
    server.pace("graded", 0)
    for model in ("medium", "large"):
        browser.open_asset("graded", "Row count")
        options = browser.open_launchpad()
        changed = re.sub(r"model: \S+", f"model: {model}", options, count=1)
        if model == "large":
            write(page, re.sub(r"root: \S+", "root: data_pipeline_res", changed))
            browser.photograph("launchpad", 760, WIDTH)
        write(page, changed)
        server.finish(browser.click("Materialize"), "SUCCESS")
    browser.open_asset("graded", "Row count")
    browser.button("Plots").click()
    browser.see("dagster/row_count")
    browser.photograph("plots", 900, WIDTH)


def write(page: Page, options: str) -> None:
    """Write options into the launchpad, and wait until they are checked."""
    with page.expect_response(lambda answer: "isPipelineConfigValid" in answer.text()):
        page.evaluate(_SET_TEXT, options)


def photograph_view(folder: Path, page: Page) -> None:
    """Run a pipeline over questions in plain Python, and take the pictures of its view."""
    words = ["how", "does", "a", "river", "find", "the", "sea", "when", "no", "map", "was", "drawn"]
    questions = [" ".join(words[at % 9 :] + words[: at % 5]) for at in range(900)]
    records = [
        {"id": at, "question": f"{text.capitalize()}{'  now' * (at % 3)}?", "answer": at * 7 % 100}
        for at, text in enumerate([*questions, *(f"{word}?" for word in words)])
    ]
    folder.mkdir()
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    with pipeline("questions") as ppl:
        ppl.clean = data.text.Normalize(input_key="question")
        ppl.long = data.filters.WordCount(input_key="question", min_words=10)
        ppl.unique = data.dedup.NearDuplicate(input_key="question")
        ppl.parts = data.sample.Split({"train": 0.9, "test": 0.1})
    with config.temporary(data_process_path=folder / "results"):
        ppl.materialize(folder / "questions.jsonl")
        page.set_viewport_size({"width": 1100, "height": 900})
        page.goto(report(ppl).as_uri())
        page.screenshot(path=HERE / "images" / "report.png")
    with viewed(folder, "results") as address:
        for name, path, height in (
            ("view", "/", 900),
            ("view-dropped", "/dropped/questions/long", 760),
            ("view-record", "/record/questions/long?line=2", 900),
        ):
            photograph_page(page, f"{address}{path}", name, height)
    ask = data.review.Ask(
        ["question", "answer"], edit=["question"], instructions="Would a child ask this?"
    )
    with config.temporary(data_process_path=folder / "reviewed"), suppress(RunWaitingError):
        ask(folder / "questions.jsonl")
    with viewed(folder, "reviewed", "--review") as address:
        photograph_page(page, f"{address}/review/Ask", "view-review", 640)


@contextmanager
def viewed(folder: Path, root: str, *options: str) -> Iterator[str]:
    """Serve a view, and yield its address."""
    command = [sys.executable, "-m", "dagster_dataops", "view", root, "--port", "0", *options]
    with subprocess.Popen(  # noqa: S603 - this package
        command, stdout=subprocess.PIPE, text=True, cwd=folder
    ) as process:
        yield re.search(r"http://localhost:\d+", process.stdout.readline())[0]
        process.terminate()


def photograph_page(page: Page, address: str, name: str, height: int) -> None:
    """Take the picture of a page once it is not loaded again by itself."""
    page.set_viewport_size({"width": 1100, "height": height})
    page.goto(address)
    while page.locator("meta[http-equiv=refresh]").count():
        page.wait_for_timeout(100)
    page.screenshot(path=HERE / "images" / f"{name}.png")


if __name__ == "__main__":
    main()
