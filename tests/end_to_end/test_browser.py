"""What a person sees and does: lineage, runs that end badly and go on, options, checks, jobs.

Screenshots are left in tests/artifacts.
"""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.end_to_end.browser import OPTIONS, Browser
from tests.end_to_end.dagster_server import HANG_SECONDS, RECORDS, DagsterServer
from tests.end_to_end.going_on import UNDISTURBED

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARTIFACTS = Path(__file__).parents[1] / "artifacts"
NODES = ("texts", "loud", "judged", "marked")
PROGRESS = re.compile(r"loud: ([\d,]+) of .* records/s")
NULLS = re.compile(r"in all records, [\d.]+ % null")  # of a sample
SECONDS = 0.2  # a record, of four at once: half a minute, if nobody ends it

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(
    not Path(CHROMIUM).exists(), reason=f"there is no Chromium at {CHROMIUM}"
)


@pytest.fixture(scope="module")
def browser(server: DagsterServer) -> Iterator[Browser]:
    ARTIFACTS.mkdir(exist_ok=True)
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        page = chromium.new_page(viewport={"width": 1500, "height": 1000})
        page.set_default_timeout(1000 * HANG_SECONDS)
        yield Browser(page, server, "browsed", ARTIFACTS)
        chromium.close()


@pytest.fixture(scope="module")
def run(browser: Browser) -> str:
    """A slow run of everything, launched by a click."""
    browser.server.pace("browsed", SECONDS)
    browser.open_lineage("marked")
    return browser.click("Materialize all")


@pytest.fixture(scope="module")
def killed(browser: Browser, run: str) -> str:
    """The same run, its step killed when a good part of its records was done."""
    call = browser.server.wait_for_calls("browsed", RECORDS // 10)[-1]
    os.kill(call.process, signal.SIGKILL)
    browser.server.pace("browsed", 0)
    return run


@pytest.fixture(scope="module")
def made(browser: Browser, killed: str) -> str:
    """The run that went on, from failure, and made everything."""
    browser.open_run(killed, "RUN_FAILURE")
    browser.photograph("run_killed")
    going_on = browser.reexecute("From failure")
    browser.server.finish(going_on, "SUCCESS")
    return going_on


def test_the_lineage_is_found_from_the_start_page(browser: Browser) -> None:
    browser.open("/", "Overview")
    browser.page.get_by_text("Lineage", exact=True).click()
    browser.page.locator(".CodeMirror").click()
    browser.page.keyboard.type('group:"browsed"')
    browser.page.keyboard.press("Enter")
    for name in NODES:
        browser.see(name)
    browser.photograph("start")


def test_the_log_of_a_run_shows_its_progress_while_it_goes_on(browser: Browser, run: str) -> None:
    browser.open_run(run, "records/s")
    lines = browser.page.get_by_text(PROGRESS)
    lines.nth(1).wait_for()
    found = [PROGRESS.search(text) for text in lines.all_inner_texts()]
    done = [int(match.group(1)) for match in found if match]
    assert done == sorted(set(done))
    assert browser.server.status(run) == "STARTED"
    browser.photograph("run_under_way")


def test_the_asset_page_plots_the_progress_while_it_goes_on(browser: Browser, run: str) -> None:
    browser.open_asset("loud", "progress/percent_done")
    assert browser.clipped() == []
    browser.button("Plots").click()
    browser.see("progress/records_done")
    assert browser.page.locator("canvas").count() > 0
    assert browser.server.status(run) == "STARTED"
    browser.photograph("asset_under_way")


def test_a_killed_step_goes_on_where_it_was_when_the_run_is_reexecuted_from_failure(
    browser: Browser, killed: str, made: str
) -> None:
    resumed = browser.server.manifest("browsed", "loud")["resumed"]
    assert 0 < resumed < RECORDS
    said = f"loud: resuming: {resumed} records settled by run {killed}"
    browser.open_log(made, "resuming:", said)
    browser.page.get_by_text(said).first.scroll_into_view_if_needed()
    browser.photograph("run_resumed")

    browser.open_asset("loud", "Row count")
    assert browser.value("dagster_dataops/rows_resumed") == str(resumed)
    assert browser.value("dagster_dataops/resumed_from") == killed
    assert browser.server.result("browsed", "loud") == UNDISTURBED
    browser.photograph("asset_resumed", height=2300)
    assert browser.clipped() == []


@pytest.mark.usefixtures("made")
def test_the_lineage_shows_what_was_made_and_which_checks_passed(browser: Browser) -> None:
    browser.open_lineage("marked")
    for text in ("1 / 3 Passed", "3 / 3 Passed"):
        browser.see(text)
    browser.page.get_by_text("Materialized", exact=True).nth(3).wait_for()
    browser.photograph("lineage")


@pytest.mark.usefixtures("made")
def test_an_asset_shows_its_rows_its_columns_and_what_failed(browser: Browser) -> None:
    browser.open_asset("judged", "Row count")
    for text in ("string | null", NULLS, "new; the operator does not tell"):
        browser.see(text)
    assert browser.value("dagster_dataops/rows_failed") == "18"
    errors = browser.value("dagster_dataops/errors")
    assert "ValueError\t12\tline 2: <b>no</b> | `answer` to *1*" in errors
    assert "judged_error.jsonl" in errors
    browser.photograph("asset", height=2300)
    assert browser.clipped() == []


@pytest.mark.usefixtures("made")
def test_failed_records_are_a_table_in_the_check_that_warns_of_them(browser: Browser) -> None:
    browser.open_asset("judged", "18 of 600 records failed, 3 %.", view="checks")
    rows = browser.page.get_by_role("row")
    texts = ["\t".join(row.get_by_role("cell").all_inner_texts()) for row in rows.all()]
    message = "<b>no</b> | `answer` to *51*, see [this](http://example.org)"
    assert f'ValueError\t12\t52\t{message}\t{{"id":51,"text":"TEXT 51"}}' in texts
    assert any("TimeoutError\t6\t3\tthe model did not answer within 30 s" in t for t in texts)
    browser.see("judged_error.jsonl")
    browser.photograph("check_failed_records")
    assert browser.clipped() == []


@pytest.mark.usefixtures("made")
def test_a_check_that_does_not_pass_shows_the_records_that_offend(browser: Browser) -> None:
    browser.open_asset("judged", "13 of 497", view="checks", checkDetail="no_nulls_verdict")
    browser.see('{"id":43,"text":"TEXT 43","verdict":null}')
    browser.photograph("check_no_nulls")
    assert browser.clipped() == []


@pytest.mark.usefixtures("made")
def test_one_operator_is_materialized_again_with_an_option_changed_in_the_launchpad(
    browser: Browser,
) -> None:
    before = browser.server.result("browsed", "judged")
    browser.open_asset("marked", "Row count")
    options = browser.open_launchpad()
    assert 'end: "!"' in options
    browser.photograph("launchpad")
    again = browser.launch(options.replace('end: "!"', 'end: "?"'))
    browser.server.finish(again, "SUCCESS")

    assert browser.server.materialized(again) == ["marked"]
    rows = [orjson.loads(line) for line in before.splitlines()]
    assert browser.server.result("browsed", "marked") == b"".join(
        orjson.dumps(row | {"marked": row["text"] + "?", "length": len(row["text"])}) + b"\n"
        for row in rows
    )


@pytest.mark.usefixtures("made")
def test_a_run_terminated_by_a_click_goes_on_with_the_next_materialization(
    browser: Browser,
) -> None:
    browser.server.pace("browsed", SECONDS)
    done = len(browser.server.calls("browsed"))
    browser.open_asset("loud", "Row count")
    terminated = browser.click("Materialize")
    browser.server.wait_for_calls("browsed", done + RECORDS // 10)
    browser.open_run(terminated, "STEP_START")
    browser.terminate()
    browser.see("RUN_CANCELED")
    browser.photograph("run_terminated")

    browser.server.pace("browsed", 0)
    browser.open_asset("loud", "Row count")
    again = browser.click("Materialize")
    browser.server.finish(again, "SUCCESS")
    browser.open_log(again, "resuming", f"settled by run {terminated}")
    assert browser.server.manifest("browsed", "loud")["resumed"] > 0
    assert browser.server.result("browsed", "loud") == UNDISTURBED


@pytest.mark.usefixtures("made")
def test_the_preview_job_shows_the_first_records_and_materializes_nothing(
    browser: Browser,
) -> None:
    before = [browser.server.result("browsed", name) for name in NODES[1:]]
    browser.open_job("browsed_preview", "preview_browsed", tab="/playground")
    preview = browser.click("Launch Run")
    browser.server.finish(preview, "SUCCESS")
    browser.open_log(preview, "preview", "browsed/marked: preview of")
    browser.see('"marked":"TEXT 4!"')
    browser.photograph("run_preview")
    assert browser.server.materialized(preview) == []
    assert [browser.server.result("browsed", name) for name in NODES[1:]] == before


@pytest.mark.usefixtures("made")
def test_the_job_that_retries_failed_records_mends_them_and_the_check_passes(
    browser: Browser,
) -> None:
    (browser.server.home / "mended").touch()
    browser.open_job("retry_failed_records_browsed", "judged")
    retry = browser.click("Materialize all")
    browser.server.finish(retry, "SUCCESS")
    browser.open_log(retry, "retrying", "retrying 18 failed records")
    browser.photograph("run_retry")

    browser.open_asset("judged", "No record failed.", view="checks")
    browser.photograph("check_mended")
    rows = browser.server.result("browsed", "judged").splitlines()
    numbers = [orjson.loads(row)["id"] for row in rows]
    assert numbers == [number for number in range(RECORDS) if number % 7]
