"""Tests of the asset pages of filters, summaries and reports in a browser.

Screenshots are left in tests/artifacts.
"""

import pytest

from tests.end_to_end.browser import Browser
from tests.pipelines.reporting.conftest import read_report

GROUP = "reported"


@pytest.fixture(scope="module")
def browser(browser: Browser) -> Browser:
    """A browser, after a run of all assets."""
    browser.open_lineage("summary")
    browser.server.finish(browser.click("Materialize all"), "SUCCESS")
    return browser


def test_the_asset_page_of_a_summary_shows_histograms_as_pictures(browser: Browser) -> None:
    browser.open_asset("summary", "histogram_3")
    pictures = browser.page.locator("img[src^='data:image/svg']")
    pictures.first.wait_for()
    assert pictures.count() == 3
    width = "image => [image.complete, image.naturalWidth]"
    assert pictures.evaluate_all(f"images => images.map({width})") == [[True, 240]] * 3
    browser.photograph("asset_histograms", height=1500)


def test_the_asset_page_of_a_filter_shows_drops_by_reason(browser: Browser) -> None:
    browser.open_asset("sized", "dagster_dataops/drops")
    drops = browser.value("dagster_dataops/drops")
    assert "low_num_words\t90\t15.0 %" in drops
    assert "high_num_words\t100\t16.7 %" in drops
    browser.photograph("asset_filter", height=1500)
    assert browser.clipped() == []


def test_the_asset_page_of_filters_in_a_chain_names_the_part(browser: Browser) -> None:
    browser.open_asset("filtered", "dagster_dataops/drops")
    drops = browser.value("dagster_dataops/drops")
    assert "Regex: regex_match\t" in drops
    browser.photograph("asset_filters", height=1500)
    assert browser.clipped() == []


def test_examples_of_dropped_records_are_in_a_window(browser: Browser) -> None:
    browser.open_asset("sized", "dagster_dataops/drop_examples")
    browser.open_window("dagster_dataops/drop_examples")
    browser.see('{"id":0,"text":"the"}')
    browser.photograph("asset_drop_examples")
    browser.page.keyboard.press("Escape")


def test_the_asset_page_of_a_report_shows_its_path_and_a_summary(browser: Browser) -> None:
    browser.open_asset("report", "dagster_dataops/report")
    table = browser.value("dagster_dataops/report")
    assert "written\t600\t600\t0\t0" in table
    path = browser.server.home / "results" / "reported" / "report" / "report.html"
    assert str(path) in browser.value("dagster_dataops/path")
    names = [node["name"] for node in read_report(path)["nodes"]]
    assert names == ["written", "sized", "filtered", "signals", "summary"]
    browser.photograph("asset_report", height=1300)
