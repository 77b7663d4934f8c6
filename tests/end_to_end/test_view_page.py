"""Tests of the view in a browser: wide and narrow, by keyboard, with the tree of a screen reader.

Screenshots are left in tests/artifacts.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import Pipeline, config, data, pipeline
from dagster_dataops.errors import RunWaitingError
from tests.end_to_end.browser import ARTIFACTS, CHROMIUM, OPTIONS
from tests.pipelines.view.conftest import judged, row, write_source
from tests.subprocesses import killed_at_exit

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no Chromium at {CHROMIUM}"),
]
WIDTHS = (1280, 400)
PAGES = {
    "overview": "/",
    "records": "/records/looks/judged",
    "search": "/records/looks/judged?q=fox&column=n&is=is+at+least&value=20",
    "dropped": "/dropped/looks/judged",
    "failed": "/failed/looks/judged",
    "changes": "/changes/looks/judged",
    "numbers": "/numbers/looks/judged",
    "record": "/record/looks/judged?line=1",
    "input": "/input/looks/judged?input=0&line=4",
    "missing": "/records/nothing",
    "reviews": "/reviews",
    "review": "/review/reviewed/ask",
}
_UNNAMED = """[...document.querySelectorAll(
    'a, button:not([hidden]), input:not([type=hidden]), select, textarea, audio, img')]
  .filter(one => !(one.innerText || one.ariaLabel || one.alt || one.getAttribute('aria-label')
    || (one.labels && one.labels[0] && one.labels[0].innerText)))
  .map(one => one.outerHTML)"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of results, and of a review that waits."""
    folder = tmp_path_factory.mktemp("viewed")
    source = write_source(folder / "in.jsonl")
    with config.temporary(data_process_path=folder / "root"):
        judged().materialize(source)
        with pytest.raises(RunWaitingError):
            reviewed()([row(number) for number in range(3)])
    return folder / "root"


def reviewed() -> Pipeline:
    """Return a pipeline whose node asks."""
    instructions = "Is the text right and complete?\nDrop what is not about foxes."
    with pipeline("reviewed") as ppl:
        ppl.ask = data.review.Ask(["text", "level"], edit=["text"], instructions=instructions)
    return ppl


@pytest.fixture(scope="module")
def address(root: Path) -> Iterator[str]:
    """The address of a view that the command serves."""
    options = ["--port", "0", "--review"]
    command = [sys.executable, "-m", "dagster_dataops", "view", root, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with killed_at_exit(process):
        assert process.stdout is not None
        found = re.search(r"http://localhost:\d+", process.stdout.readline())
        assert found is not None
        yield found[0]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    ARTIFACTS.mkdir(exist_ok=True)
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def window(chromium: Any) -> Any:
    """A window with an empty page; each window would have two processes for what is around it."""
    context = chromium.new_context()
    context.new_page()
    return context


@pytest.fixture(params=WIDTHS)
def page(window: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """An empty page; errors and requests are in its lists."""
    page = window.new_page()
    page.set_viewport_size({"width": request.param, "height": 900})
    page.errors, page.requests = [], []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda message: page.errors.append(message.text))
    page.on("request", lambda asked: page.requests.append(asked.url))
    page.set_default_timeout(20_000)
    yield page
    page.close()
    window.clear_cookies()
    window.clear_permissions()


def opened(page: Any, address: str, path: str) -> None:
    """Open a page, and wait until it is not loaded again by itself."""
    page.goto(f"{address}{path}")
    while page.locator("meta[http-equiv=refresh]").count():
        page.wait_for_timeout(100)


def test_no_page_is_wider_than_the_window_or_has_unnamed_controls(page: Any, address: str):
    width = page.viewport_size["width"]
    for name, path in PAGES.items():
        opened(page, address, path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.evaluate(_UNNAMED) == [], name
        assert page.evaluate("document.querySelectorAll('h1').length") == 1, name
        assert page.locator("main").count() == 1, name
        assert page.locator("th:not([scope])").count() == 0, name
        page.screenshot(path=ARTIFACTS / f"view_{name}_{width}.png", full_page=width > 400)
    missing = [one for one in page.errors if "404" not in one]
    assert missing == []
    assert [one for one in page.requests if not one.startswith((address, "data:"))] == []


def test_texts_of_records_do_not_run(page: Any, address: str):
    opened(page, address, PAGES["records"])
    assert page.title() == "judged: Records · dagster-dataops"
    assert page.get_by_text("document.title").last.is_visible()


def test_a_record_is_found_by_the_keyboard_alone(page: Any, address: str):
    opened(page, address, "/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    page.keyboard.press("Enter")
    for _ in range(30):
        page.keyboard.press("Tab")
        if "judged: 300" in (
            page.evaluate("document.activeElement.getAttribute('aria-label')") or ""
        ):
            break
    page.keyboard.press("Enter")
    page.get_by_role("searchbox", name="Text in any column").focus()
    page.keyboard.type("fox 217 ")
    page.keyboard.press("Enter")
    page.get_by_text("1 found in all 264 records").wait_for()
    page.get_by_role("link", name=re.compile("record in line")).focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Through the nodes").wait_for()
    page.get_by_role("navigation", name="Place").get_by_role("link", name="root").click()
    assert page.get_by_role("heading", name="Graph").is_visible()


def test_a_screen_reader_finds_tables_and_landmarks(page: Any, address: str):
    opened(page, address, PAGES["records"])
    for role, name in (
        ("navigation", "Place"),
        ("navigation", "Pages of the node"),
        ("region", "Records"),
        ("search", None),
        ("main", None),
    ):
        options = {"name": name} if name else {}
        assert page.get_by_role(role, **options).count() >= 1, (role, name)
    assert page.get_by_role("table").count() == 1
    assert page.get_by_role("row").count() == 26
    assert page.get_by_role("columnheader").count() >= 4
    assert page.get_by_role("link", name="Records", exact=False).first.get_attribute("aria-current")


def access_key(page: Any, key: str) -> None:
    """Press Alt with a digit; without a text, as the driver sends it, it is no access key."""
    pressed = {"key": key, "code": f"Digit{key}", "unmodifiedText": key, "text": key}
    page.context.new_cdp_session(page).send(
        "Input.dispatchKeyEvent",
        {"type": "keyDown", "modifiers": 1, "windowsVirtualKeyCode": ord(key), **pressed},
    )


def test_people_decide_with_the_keyboard_alone(page: Any, address: str, root: Path):
    width = page.viewport_size["width"]
    file = root / "reviewed" / "ask" / "review" / "decided-in-view.jsonl"
    file.unlink(missing_ok=True)
    opened(page, address, f"{PAGES['review']}?reviewer=width+{width}")
    page.get_by_role("textbox", name="Comment").focus()
    page.keyboard.type("a comment")
    page.keyboard.press("Enter")  # sends nothing
    page.get_by_text("3 of 3 questions open").wait_for()
    page.get_by_role("textbox", name="New value of text").focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("better")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the first choice
    status = page.get_by_role("status")
    status.get_by_text("Saved: keep, with 1 change").wait_for()
    access_key(page, "2")
    status.get_by_text("Saved: drop").wait_for()
    page.screenshot(path=ARTIFACTS / f"view_decided_{width}.png", full_page=width > 400)
    page.get_by_text("2 decisions that you may still change").click()
    page.get_by_role("link", name="drop").click()
    page.get_by_role("button", name="Take it back").click()
    status.get_by_text("Taken back").wait_for()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["decision"], line["edited"]) for line in lines] == [("keep", {"text": "better"})]
    assert (lines[0]["reviewer"], lines[0]["comment"]) == (f"width {width}", "a comment")
    assert page.errors == []


@pytest.mark.parametrize("permitted", [True, False])
def test_the_text_that_redoes_records_is_copied_by_the_keyboard(
    page: Any, address: str, permitted: bool
):
    if permitted:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    else:
        page.add_init_script("navigator.clipboard.writeText = () => Promise.reject(new Error())")
    opened(page, address, PAGES["dropped"] + "?reason=three+%26+%3Cb%3Emore%3C%2Fb%3E")
    page.get_by_text("Redo these 30 records").focus()
    page.keyboard.press("Enter")
    button = page.get_by_role("button", name="Copy: On the command line")
    assert button.is_visible()
    text = page.get_by_role("textbox", name="On the command line").inner_text()
    assert "drop_reason == " in text
    button.focus()
    page.keyboard.press("Enter")
    if permitted:
        page.get_by_role("status").get_by_text("Copied.").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == text
    else:
        page.get_by_role("status").get_by_text("press Ctrl+C").wait_for()
        assert page.evaluate("getSelection().toString()") == text
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.screenshot(path=ARTIFACTS / f"view_redo_{width}.png", full_page=width > 400)
    assert page.errors == []


def test_the_text_that_redoes_records_is_there_without_scripts(chromium: Any, address: str):
    page = chromium.new_page(java_script_enabled=False)
    page.goto(f"{address}{PAGES['dropped']}?reason=three+%26+%3Cb%3Emore%3C%2Fb%3E")
    while page.locator("meta[http-equiv=refresh]").count():
        page.wait_for_timeout(100)
    page.get_by_text("Redo these 30 records").click()
    assert page.get_by_role("textbox", name="On the command line").is_visible()
    assert page.get_by_role("button", name="Copy").count() == 0
    page.close()
