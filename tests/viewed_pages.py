"""Pages of the view, as a browser gets them."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

from starlette.testclient import TestClient

from dagster_dataops.pipelines.view.serving import view_application

_SECONDS: Final = 60.0
_VOID: Final = frozenset({"meta", "link", "input", "img", "br", "hr", "path", "rect", "line"})


class Page(HTMLParser):
    """A page.

    Attributes:
        status: The status of the answer.
        headers: Its headers.
        source: Its HTML.
        tags: The names of all elements, each with its attributes.
        rows: The texts of the cells of each row of a table.
        links: The addresses of links, by their text.
    """

    def __init__(self, status: int, headers: Any, source: str) -> None:
        super().__init__()
        self.status, self.headers, self.source = status, headers, source
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.links: dict[str, str] = {}
        self._texts: list[str] = []
        self._open: list[tuple[str, dict[str, str | None], int]] = []
        self.feed(source)

    @property
    def text(self) -> str:
        """All texts, with one space between them."""
        return " ".join(" ".join(self._texts).split())

    @property
    def waits(self) -> bool:
        """Whether it is loaded again by itself."""
        return any(given.get("http-equiv") == "refresh" for _, given in self.tags)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag not in _VOID:
            self._open.append((tag, dict(attrs), len(self._texts)))

    def handle_data(self, data: str) -> None:
        self._texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            name, given, start = self._open.pop()
            text = "".join(self._texts[start:]).strip()
            if name in {"td", "th"} and self.rows:
                self.rows[-1].append(text)
            if name == "a":
                self.links[text] = given.get("href") or ""
            if name == tag:
                return

    def marked(self, tag: str) -> list[str]:
        """Return the texts of all elements with a name that hold no others."""
        parts = self.source.split(f"<{tag}>")[1:]
        return [part.partition(f"</{tag}>")[0] for part in parts]


class Viewer:
    """Asks a view for pages.

    Args:
        client: The client.
    """

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def at_once(self, path: str, **headers: str) -> Page:
        """Return a page as it is now."""
        answer = self.client.get(path, headers=headers)
        return Page(answer.status_code, answer.headers, answer.text)

    def send(self, path: str, form: Mapping[str, str], **headers: str) -> Page:
        """Send a form as a browser does from a page of the view; return the page after it."""
        sent = {"origin": "http://localhost", **headers}
        answer = self.client.post(path, data=form, headers=sent)
        return Page(answer.status_code, answer.headers, answer.text)

    def page(self, path: str) -> Page:
        """Return a page once it is not loaded again by itself."""
        end = time.monotonic() + _SECONDS
        while (page := self.at_once(path)).waits:
            assert time.monotonic() < end, page.text
        return page


@contextmanager
def viewing(shown: str | Path, reviews: Sequence[str] | None = None) -> Iterator[Viewer]:
    """Yield a viewer of a root, or of a pipeline in a file; with reviews it takes decisions."""
    app: Any = view_application(str(shown), reviews)
    with TestClient(app, base_url="http://localhost") as client:
        yield Viewer(client)
