"""A browser that shows a server: reading, clicking and typing."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.end_to_end.dagster_server import DagsterServer

CHROMIUM = Path(shutil.which("chromium") or "/usr/bin/chromium")
ARTIFACTS = Path(__file__).parents[1] / "artifacts"
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-software-rasterizer",
    "--disable-extensions",
    "--renderer-process-limit=1",
    "--js-flags=--min-semi-space-size=64 --max-semi-space-size=128",  # fewer collections
]
WITHOUT_ANIMATIONS = """addEventListener('DOMContentLoaded', () => {
  const style = document.createElement('style');  // drawn by the processor, many times a second
  style.textContent = `*, *::before, *::after { animation-duration: 1ms !important;
    animation-iteration-count: 1 !important; transition-duration: 1ms !important; }`;
  document.head.append(style);
})"""
_LAUNCH = "mutation Launch"
_RUN = re.compile(r'"id":"([0-9a-f-]{36})"')


class Browser:
    """One page of a browser, and the server that it shows.

    Args:
        page: The page of Playwright.
        server: The server.
        group: The group of assets to show.
        pictures: The folder of the screenshots.
    """

    def __init__(self, page: Any, server: DagsterServer, group: str, pictures: Path) -> None:
        self.page = page
        self.server = server
        self._location = f"/locations/__repository__@{server.location}"
        self._group = group
        self._pictures = pictures

    # ------------------------------------------------------------ reading

    def open(self, path: str, text: str) -> None:
        """Open a page and wait until ``text`` is on it, and nothing is loaded any more."""
        self.page.goto(f"{self.server.url}{path}")
        self.see(text)
        self.page.wait_for_load_state("networkidle")

    def open_lineage(self, node: str) -> None:
        self.open(f"{self._location}/asset-groups/{self._group}/lineage", node)

    def open_asset(self, name: str, text: str = "Metadata", **query: str) -> None:
        asked = "&".join(f"{key}={value}" for key, value in query.items())
        self.open(f"/assets/{self._group}/{name}?{asked}", text)

    def open_job(self, name: str, text: str, tab: str = "") -> None:
        self.open(f"{self._location}/jobs/{name}{tab}", text)

    def open_run(self, run: str, text: str) -> None:
        self.page.goto(f"{self.server.url}/runs/{run}")
        self.see(text)

    def open_log(self, run: str, wanted: str, text: str) -> None:
        """Open the lines of a run's log that contain ``wanted``; one contains ``text``."""
        self.open(f"/runs/{run}?logs={wanted}", text)

    def see(self, text: str | re.Pattern[str]) -> None:
        """Wait until a text is visible."""
        self.page.get_by_text(text).first.wait_for()

    def button(self, name: str, within: Any = None) -> Any:
        """Return the last button whose text contains ``name``: icons are part of the text."""
        return (within or self.page).get_by_role("button", name=re.compile(name)).last

    def value(self, key: str) -> str:
        """Return the value that the asset page shows for a metadata key."""
        row = self.page.get_by_role("row").filter(has=self.page.get_by_text(key, exact=True))
        text: str = row.first.locator(":scope > td").last.inner_text()
        return text

    def open_window(self, key: str) -> None:
        """Open the window with the value of a metadata key; Escape closes it."""
        row = self.page.get_by_role("row").filter(has=self.page.get_by_text(key, exact=True))
        row.first.get_by_text("[Show Markdown]").click()

    def clipped(self) -> list[str]:
        """Return the table rows that are wider than their visible box, by their text."""
        found: list[str] = self.page.evaluate(_CLIPPED)
        return found

    def photograph(self, name: str, height: int = 1000, width: int = 1500) -> None:
        """Save a screenshot of a given size in pixels."""
        usual = self.page.viewport_size
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.wait_for_load_state("networkidle")
        self.page.screenshot(path=self._pictures / f"{name}.png")
        self.page.set_viewport_size(usual)

    # ------------------------------------------------------------ acting

    def leave(self) -> None:
        """Leave the page while a run goes on: an open one keeps asking the server for news."""
        self.page.goto("about:blank")

    @contextmanager
    def launching(self) -> Iterator[list[str]]:
        """Expect that the block launches a run; its id is in the list afterwards.

        The page is left then.
        """
        launched: list[str] = []
        with self.page.expect_response(lambda r: _LAUNCH in (r.request.post_data or "")) as answer:
            yield launched
        text = answer.value.text()
        found = _RUN.search(text)
        assert found, text
        launched.append(found.group(1))
        self.leave()

    def click(self, name: str) -> str:
        """Click a button that launches a run, and return its id."""
        button = self.button(name)
        with self.launching() as launched:
            button.click()  # as soon as it is enabled
        return launched[0]

    def reexecute(self, strategy: str) -> str:
        """Choose how to re-execute the run that is open, and return the new run's id."""
        self.button("Re-execute").locator("xpath=following::button[1]").click()
        with self.launching() as launched:
            self.page.get_by_role("menuitem", name=re.compile(strategy)).click()
        return launched[0]

    def terminate(self) -> None:
        """Terminate the run that is open."""
        self.button("Terminate").click()
        self.button("Terminate 1 run", self.page.get_by_role("dialog")).click()

    def open_launchpad(self) -> str:
        """Open the options of the asset that is open, and return them: YAML."""
        self.button("Materialize").click(modifiers=["Shift"])
        self.page.locator(".CodeMirror").wait_for()
        self.see("All defaults expanded")
        text: str = self.page.evaluate(
            "document.querySelector('.CodeMirror').CodeMirror.getValue()"
        )
        return text

    def launch(self, options: str) -> str:
        """Launch a run with other options, and return its id."""
        change = "text => document.querySelector('.CodeMirror').CodeMirror.setValue(text)"
        with self.page.expect_response(lambda r: "isPipelineConfigValid" in r.text()):
            self.page.evaluate(change, options)
        return self.click("Materialize")


_CLIPPED = """() => {
  const cut = (table) => {
    for (let box = table.parentElement; box; box = box.parentElement) {
      if (getComputedStyle(box).overflowX == 'visible') continue;
      const edge = box.getBoundingClientRect().right;
      return table.getBoundingClientRect().right > edge + 2;
    }
    return false;
  };
  return [...document.querySelectorAll('table')].filter(cut).map(table => table.innerText);
}"""
