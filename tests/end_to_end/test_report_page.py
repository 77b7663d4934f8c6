"""Tests of the report of a pipeline in a browser, without a server and without a network.

Screenshots are left in tests/artifacts.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from dagster_dataops import config, report
from tests.end_to_end.browser import ARTIFACTS, CHROMIUM, OPTIONS
from tests.pipelines.reporting.conftest import HOSTILE, reported, write_source

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no Chromium at {CHROMIUM}")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A page that shows the report; requests and errors are in its lists."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    folder = tmp_path_factory.mktemp("reported")
    ppl = reported()
    with config.temporary(data_process_path=folder / "root", data_process_resume=True):
        ppl.materialize(write_source(folder / "in.jsonl"))
        path = report(ppl)
    ARTIFACTS.mkdir(exist_ok=True)
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        page = chromium.new_page(viewport={"width": 1300, "height": 1000})
        page.requests, page.errors = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("console", lambda message: page.errors.append(message.text))
        page.set_default_timeout(10_000)
        page.goto(path.as_uri())
        yield page
        chromium.close()


def test_the_page_shows_the_graph_and_a_table_of_nodes_and_parts(page: Any) -> None:
    rows = page.locator("#funnel tbody tr").all()
    names = [row.locator("th, td").first.inner_text() for row in rows]
    assert names == ["judged", "cleaned", "shorter", "picky", "turned"]
    assert rows[0].locator("th, td").all_inner_texts()[2:6] == ["300", "264", "30", "36"]
    assert page.locator("svg.funnel g.box").count() == 4
    page.screenshot(path=ARTIFACTS / "report_funnel.png")


def test_nothing_is_loaded_and_nothing_fails(page: Any) -> None:
    assert page.errors == []
    assert [one for one in page.requests if not one.startswith("data:")] == [page.url]
    assert page.title() == "reported: report"  # no text was run as a script


def test_hostile_texts_are_shown_as_they_are(page: Any) -> None:
    page.locator("#node-0 details.group").first.locator("summary").click()
    shown = page.locator("#node-0 article.failed").first.inner_text()
    assert HOSTILE.split("\N{LINE SEPARATOR}")[0] in shown


def test_changes_are_side_by_side_with_the_words_marked(page: Any) -> None:
    change = page.locator("#node-0 .change", has_text="changed").first
    first, second = change.locator("tbody tr td").all()
    assert first.bounding_box()["x"] < second.bounding_box()["x"]
    assert first.bounding_box()["y"] == second.bounding_box()["y"]
    cut, added = first.locator("del").all_inner_texts(), second.locator("ins").all_inner_texts()
    assert [text.upper() for text in cut] == added
    assert cut[0] == "text"
    change.scroll_into_view_if_needed()
    page.screenshot(path=ARTIFACTS / "report_node.png")


def test_lengths_are_drawn_in_readable_size(page: Any) -> None:
    chart = page.locator("#node-1 .chart svg").first
    assert chart.locator("rect").count() > 2
    assert chart.bounding_box()["width"] > 400


def test_failed_records_are_in_their_groups(page: Any) -> None:
    groups = page.locator("#node-0 details.group")
    assert groups.locator("summary").all_inner_texts()[0].startswith("ValueError: 30")
    assert [one.locator("article").count() for one in groups.all()] == [30, 6]
    groups.last.locator("summary").focus()
    page.keyboard.press("Enter")
    assert groups.last.locator("article").first.is_visible()


def test_the_report_fits_a_narrow_window(page: Any) -> None:
    before = page.viewport_size
    page.set_viewport_size({"width": 400, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.screenshot(path=ARTIFACTS / "report_400.png")
    page.set_viewport_size(before)
