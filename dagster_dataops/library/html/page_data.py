"""``html.Metadata``, ``html.Tables`` and ``html.ToMarkdown``: data and Markdown of a page."""

import re
from io import StringIO
from typing import Any, Final

from typing_extensions import override

from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.html.html_source import html, readable, too_deep
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.library.text_mapping import TextOperator
from dagster_dataops.records import Record

_HTML_TAG: Final = re.compile(
    r"<html\b[^>]{0,1000}?\blang\s{0,9}=\s{0,9}[\"']?([\w-]{1,35})", re.IGNORECASE
)
_HEAD: Final = 5_000  # characters in which the tag stands
_MOST_UNENDED: Final = 100  # tags for which Python's parser reads on to the end of the page


class Metadata(html):
    """Find the title, author, date, language and address of an HTML page.

    Reads ``input_key`` and writes ``output_key``: a dict with the keys ``title``, ``author``,
    ``date`` (YYYY-MM-DD), ``lang`` (as the page declares it) and ``url`` (the canonical address),
    each a text or ``None``. Needs the extra ``html``. The work is done by trafilatura.

    Args:
        input_key: The key of the page.
        output_key: Where the dict is written.
    """

    def __init__(
        self, input_key: str = "html", output_key: str = "metadata", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        with needs_extra("html.Metadata", "html"):
            from trafilatura import extract_metadata
        self._extract = extract_metadata
        self._column, self._written = FieldKey(input_key), output_key

    def forward(self, record: Record) -> Record:
        page = readable(self._column.text(record))
        found = self._extract(page) if page.strip() else None
        declared = _HTML_TAG.search(page, 0, _HEAD)
        record[self._written] = {
            "title": getattr(found, "title", None),
            "author": getattr(found, "author", None),
            "date": getattr(found, "date", None),
            "lang": declared[1] if declared else None,
            "url": getattr(found, "url", None),
        }
        return record


class Tables(html):
    """Find the tables of an HTML page.

    Reads ``input_key`` and writes ``output_key``: a list of tables, each a list of rows, each a
    list of the texts of the cells. White space in a cell becomes one space. A table in a cell comes
    after the outer table, and its text is not in the cell. Needs the extra ``html``.

    Args:
        input_key: The key of the page.
        output_key: Where the list is written.
    """

    def __init__(self, input_key: str = "html", output_key: str = "tables", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with needs_extra("html.Tables", "html"):
            from lxml import etree
        self._etree = etree
        self._column, self._written = FieldKey(input_key), output_key

    def forward(self, record: Record) -> Record:
        page = readable(self._column.text(record))
        record[self._written] = self._tables(page) if "<" in page else []
        return record

    def _tables(self, page: str) -> list[Any]:
        parser = self._etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
        root = self._etree.fromstring(page.encode(), parser)
        if root is None:
            return []
        reader = _TableReader()
        for event, element in self._etree.iterwalk(root, events=("start", "end")):
            (reader.start if event == "start" else reader.end)(element)
        return reader.tables()


class _TableReader:
    """Collects the cells of tables, from the starts and ends of elements."""

    def __init__(self) -> None:
        self._found: list[list[list[list[str]]]] = []  # tables of rows of cells of pieces
        self._open: list[list[list[list[str]]]] = []

    def start(self, element: Any) -> None:
        """Begin a table, a row or a cell, and take the text."""
        if element.tag == "table":
            self._open.append([])
            self._found.append(self._open[-1])
        elif self._open and element.tag == "tr":
            self._open[-1].append([])
        elif self._open and element.tag in {"td", "th"} and self._open[-1]:
            self._open[-1][-1].append([])
        self._add(element.text)

    def end(self, element: Any) -> None:
        """End a table, and take the text after the element."""
        if element.tag == "table":
            self._open.pop()
        self._add(element.tail)

    def tables(self) -> list[list[list[str]]]:
        """Return the tables without empty rows."""
        return [
            [[" ".join("".join(cell).split()) for cell in row] for row in table if row]
            for table in self._found
        ]

    def _add(self, text: str | None) -> None:
        if text and self._open and self._open[-1] and self._open[-1][-1]:
            self._open[-1][-1][-1].append(text)


class ToMarkdown(TextOperator, html):
    """Write a whole HTML page as Markdown.

    Headings, lists, tables, links, images, quotes and code. Reads ``input_key`` and writes
    ``output_key``; an empty page becomes an empty text. Pages nested more than some hundred levels
    are errors. Needs the extra ``html``. The work is done by markdownify, with its defaults;
    `html.Extract` with ``format="markdown"`` writes the main text alone.

    Args:
        input_key: The key of the page.
        output_key: Where the text is written.
    """

    def __init__(self, input_key: str = "html", output_key: str = "text", **kwargs: Any) -> None:
        super().__init__(input_key, output_key, **kwargs)
        with needs_extra("html.ToMarkdown", "html"):
            from bs4 import BeautifulSoup
            from markdownify import MarkdownConverter
        self._soup, self._converter = BeautifulSoup, MarkdownConverter

    @override
    def changed(self, value: str) -> str:
        page = readable(value)
        # Python's parser is the default of markdownify; it nests paragraphs that do not end.
        for parser in ("lxml",) if _slow_for_python(page) else ("html.parser", "lxml"):
            try:
                # BeautifulSoup warns about short texts that look like file names, but not about
                # files.
                soup = self._soup(StringIO(page), parser)
                converted: str = self._converter().convert_soup(soup)
            except RecursionError:
                continue
            return converted
        raise too_deep("html.ToMarkdown")


def _slow_for_python(page: str) -> bool:
    """Return whether Python's parser takes quadratic time: for many tags that never end."""
    tags = page.count("<", page.rfind(">") + 1)
    comments = page.count("<!--", page.rfind("-->") + 1)
    return tags + comments + page.count("<![") > _MOST_UNENDED
