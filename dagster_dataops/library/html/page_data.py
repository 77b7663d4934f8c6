"""``html.Metadata``, ``html.Tables`` and ``html.ToMarkdown``: data and Markdown of a page."""

import re
from io import StringIO
from typing import Any, Final, NamedTuple

from dagster_dataops.foundation.override import override
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.html.html_source import html, readable, too_deep
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.library.text_mapping import TextOperator
from dagster_dataops.records import Record

_HTML_TAG: Final = re.compile(
    r"<html\b[^>]{0,1000}?\blang\s{0,9}=\s{0,9}[\"']?([\w-]{1,35})", re.IGNORECASE
)
_HEAD: Final = 5_000  # characters in which the tag stands
_SECTIONS: Final = {"thead", "tbody", "tfoot"}
_DIGITS: Final = re.compile(r"\s*\+?([0-9]{1,9})")
_MOST_ROWS: Final = 65_534  # that a cell spans
_MOST_COLUMNS: Final = 1_000
_MOST_CELLS: Final = 1_000_000  # of a table
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
        document = self._extract(page) if page.strip() else None
        declared = _HTML_TAG.search(page, 0, _HEAD)
        record[self._written] = {
            "title": getattr(document, "title", None),
            "author": getattr(document, "author", None),
            "date": getattr(document, "date", None),
            "lang": declared[1] if declared else None,
            "url": getattr(document, "url", None),
        }
        return record


class Tables(html):
    """Find the tables of an HTML page.

    Reads ``input_key`` and writes ``output_key``: a list of tables, each a list of rows, each a
    list of the texts of the cells. White space in a cell becomes one space. A cell that spans rows
    or columns is in each of them, so that columns stay columns. A table in a cell comes after the
    outer table, and its text is not in the cell. A table of more than a million cells with its
    spans is an error. Needs the extra ``html``.

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
        self._tables: list[_Table] = []
        self._open: list[_Table] = []

    def start(self, element: Any) -> None:
        """Begin a table, a row or a cell, and take the text."""
        if element.tag == "table":
            self._open.append(_Table())
            self._tables.append(self._open[-1])
        elif self._open and element.tag in _SECTIONS:
            self._open[-1].sections.append([])
        elif self._open and element.tag == "tr":
            self._open[-1].sections[-1].append([])
        elif self._open and element.tag in {"td", "th"} and (row := self._open[-1].row) is not None:
            row.append(_Cell([], _span(element, "rowspan"), _span(element, "colspan")))
        self._add(element.text)

    def end(self, element: Any) -> None:
        """End a table, and take the text after the element."""
        if element.tag == "table":
            self._open.pop()
        self._add(element.tail)

    def tables(self) -> list[list[list[str]]]:
        """Return the tables without empty rows."""
        return [table.texts() for table in self._tables]

    def _add(self, text: str | None) -> None:
        row = self._open[-1].row if text and self._open else None
        if text and row:
            row[-1].pieces.append(text)


class _Cell(NamedTuple):
    """A cell: the pieces of its text, and how many rows (0: all below) and columns it spans."""

    pieces: list[str]
    rows: int
    columns: int

    @property
    def text(self) -> str:
        return " ".join("".join(self.pieces).split())


class _Table:
    """A table: sections of rows of cells. No cell spans rows of two sections."""

    def __init__(self) -> None:
        self.sections: list[list[list[_Cell]]] = [[]]

    @property
    def row(self) -> list[_Cell] | None:
        """The last row of the section; ``None`` before the first."""
        return self.sections[-1][-1] if self.sections[-1] else None

    def texts(self) -> list[list[str]]:
        """Return the texts of the cells of each row, each cell in all its rows and columns."""
        rows: list[list[str]] = []
        cells = 0
        for section in self.sections:
            hanging: dict[int, tuple[str, int]] = {}  # by column: text, rows that it still spans
            for number, row in enumerate(section):
                cells += sum(cell.columns for cell in row) + len(hanging)
                if cells > _MOST_CELLS:
                    msg = f"a table has more than {_MOST_CELLS:,} cells with its spans"
                    raise ValueError(msg)
                texts = _spread(row, hanging, len(section) - number)
                if texts:
                    rows.append(texts)
        return rows


def _spread(row: list[_Cell], hanging: dict[int, tuple[str, int]], left: int) -> list[str]:
    """Return the texts of a row, from the cells that begin in it.

    ``hanging`` has the cells of rows before, by column; it is changed to those that go on in the
    next row. ``left`` is the number of rows that the section has left, with this one.
    """
    texts: list[str] = []

    def take_hanging() -> None:
        while (above := hanging.pop(len(texts), None)) is not None:
            after[len(texts)] = (above[0], above[1] - 1)
            texts.append(above[0])

    after: dict[int, tuple[str, int]] = {}
    for cell in row:
        text, rows = cell.text, cell.rows or left
        for _ in range(cell.columns):
            take_hanging()
            after[len(texts)] = (text, rows - 1)
            texts.append(text)
    take_hanging()
    for column in sorted(hanging):
        texts += [""] * (column - len(texts))
        take_hanging()
    hanging.clear()
    hanging.update({column: cell for column, cell in after.items() if cell[1] > 0})
    return texts


def _span(element: Any, name: str) -> int:
    """Return how many rows or columns a cell spans, by the rules of the HTML standard."""
    digits = _DIGITS.match(element.get(name) or "")
    number = int(digits[1]) if digits else 1
    return min(number, _MOST_ROWS) if name == "rowspan" else min(max(number, 1), _MOST_COLUMNS)


class ToMarkdown(TextOperator, html):
    """Write a whole HTML page as Markdown.

    Headings, lists, tables, links, images, quotes and code. Reads ``input_key`` and writes
    ``output_key``; an empty page becomes an empty text. Of a cell that spans rows or columns, the
    other places are empty cells. XML declarations and other processing instructions are left out.
    Pages nested more than some hundred levels are errors. Needs the extra ``html``. The work is
    done by markdownify, with its defaults; `html.Extract` with ``format="markdown"`` writes the
    main text alone.

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
        return self.converted(value)

    def converted(self, value: str, *, unread: str | None = None, **style: Any) -> str:
        """Return a page as Markdown.

        Args:
            value: The page.
            unread: A CSS selector of the elements that are left out; ``None`` for none.
            style: Options of markdownify.

        Raises:
            UnfitRecordError: The page is nested too deeply.
        """
        page = readable(value)
        # Python's parser is the default of markdownify; it nests paragraphs that do not end.
        for parser in ("lxml",) if _slow_for_python(page) else ("html.parser", "lxml"):
            try:
                # BeautifulSoup warns about short texts that look like file names, but not about
                # files.
                soup = self._soup(StringIO(page), parser)
                for element in soup.select(unread) if unread else ():
                    element.decompose()
                _leave_out_instructions(soup, page)
                _fill_rows(soup)
                converted: str = self._converter(**style).convert_soup(soup)
            except RecursionError:
                continue
            return converted
        raise too_deep("html.ToMarkdown")


def _leave_out_instructions(soup: Any, page: str) -> None:
    """Remove processing instructions, such as the XML declaration of XHTML: no text of a page."""
    from bs4 import ProcessingInstruction

    texts = soup.find_all(string=True) if "<?" in page else ()
    for text in texts:
        if isinstance(text, ProcessingInstruction):
            text.extract()


def _fill_rows(soup: Any) -> None:
    """Add empty cells where cells of earlier rows reach down: Markdown has no spans."""
    tables = soup.find_all("table") if soup.find(rowspan=True) is not None else ()
    for table in tables:
        hanging: dict[int, int] = {}  # by column: rows that a cell still spans
        section = None
        for row in table.find_all("tr"):
            if row.find_parent("table") is table:
                if row.parent is not section:
                    section, hanging = row.parent, {}
                hanging = _fill_row(soup, row, hanging)


def _fill_row(soup: Any, row: Any, hanging: dict[int, int]) -> dict[int, int]:
    """Add the empty cells of a row; return the columns that cells still span, with their rows."""
    after, column = {}, 0
    cells = row.find_all(["td", "th"], recursive=False)
    for cell in (*cells, None):
        while column in hanging:
            after[column] = hanging.pop(column) - 1
            empty = soup.new_tag("td")
            row.append(empty) if cell is None else cell.insert_before(empty)
            column += 1
        if cell is not None:
            rows = _span(cell, "rowspan") or _MOST_ROWS
            width = _span(cell, "colspan")
            after.update(dict.fromkeys(range(column, column + width), rows - 1))
            column += width
    passed = {place: rows - 1 for place, rows in hanging.items()}  # right of the last cell
    return {place: rows for place, rows in (passed | after).items() if rows > 0}


def _slow_for_python(page: str) -> bool:
    """Return whether Python's parser takes quadratic time: for many tags that never end."""
    tags = page.count("<", page.rfind(">") + 1)
    comments = page.count("<!--", page.rfind("-->") + 1)
    return tags + comments + page.count("<![") > _MOST_UNENDED
