"""Tests of the report of a pipeline in a browser, without a server and without a network.

Screenshots are left in tests/artifacts.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from dagster_dataops import config, report
from tests.end_to_end.browser import ARTIFACTS, CHROMIUM, OPTIONS
from tests.pipelines.reporting.conftest import HOSTILE, reported, write_source

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no Chromium at {CHROMIUM}")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A page that shows the report; requests and errors are in its lists."""
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


def test_the_page_shows_the_funnel_of_nodes_and_parts(page: Any) -> None:
    rows = page.locator("#funnel tbody tr").all()
    names = [row.locator("td").first.inner_text() for row in rows]
    assert names == ["judged", "cleaned", "shorter", "picky", "turned"]
    assert rows[0].locator("td").all_inner_texts()[2:6] == ["300", "264", "30", "36"]
    page.screenshot(path=ARTIFACTS / "report_funnel.png")


def test_nothing_is_loaded_and_nothing_fails(page: Any) -> None:
    assert page.errors == []
    assert len(page.requests) == 1
    assert page.title() == "reported: report"  # no text was run as a script


def test_hostile_texts_are_shown_as_they_are(page: Any) -> None:
    shown = page.locator("#failed tbody tr").first.inner_text()
    assert HOSTILE.split("\N{LINE SEPARATOR}")[0] in shown


def test_changes_are_side_by_side_with_the_difference_marked(page: Any) -> None:
    change = page.locator("#node-0 .change", has_text="changed").first
    first, second = change.locator(".side").all()
    assert first.bounding_box()["x"] < second.bounding_box()["x"]
    assert first.bounding_box()["y"] == second.bounding_box()["y"]
    assert first.locator("del").inner_text().startswith("text 7")
    assert second.locator("ins").inner_text().startswith("TEXT 7")
    page.locator("#node-0").screenshot(path=ARTIFACTS / "report_node.png")
    page.locator("#node-1").screenshot(path=ARTIFACTS / "report_lengths.png")


def test_lengths_are_drawn(page: Any) -> None:
    assert page.locator("#node-1 svg rect").count() > 2


def test_failed_records_are_paged_through(page: Any) -> None:
    where, rows = page.locator("#page"), page.locator("#failed tbody tr")
    total = int(where.inner_text().split()[-2])
    assert rows.count() == 25
    seen = rows.count()
    while page.get_by_role("button", name="Next").is_enabled():
        page.get_by_role("button", name="Next").click()
        seen += rows.count()
    assert seen == total
    page.locator("#failures").screenshot(path=ARTIFACTS / "report_failures.png")
    page.get_by_role("button", name="First").click()
    assert where.inner_text().startswith("page 1 of 2")


def test_a_click_on_a_group_shows_its_records_only(page: Any) -> None:
    group = page.locator("#groups tbody tr", has_text="KeyError")
    group.click()
    assert page.locator("#page").inner_text() == "page 1 of 1, 6 records"
    assert page.locator("#failed tbody tr").count() == 6
    group.click()
    assert page.locator("#failed tbody tr").count() == 25
