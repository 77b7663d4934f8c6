"""``html.ToMarkdown``: a whole page as Markdown."""

from functools import partial
from io import StringIO
from typing import Any, Final

from dagster_dataops.data import data_register
from dagster_dataops.errors import MissingExtraError
from dagster_dataops.library.html.html_source import readable, too_deep
from dagster_dataops.library.text_mapping import TextMapping
from dagster_dataops.records import Record

html: Any = data_register.new_group("html")

_MOST_UNENDED: Final = 100  # tags for which Python's parser reads on to the end of the page


class ToMarkdown(html):
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
        super().__init__(**kwargs)
        try:
            from bs4 import BeautifulSoup
            from markdownify import MarkdownConverter
        except ImportError:
            raise MissingExtraError("html.ToMarkdown", "html") from None
        change = partial(_markdown, BeautifulSoup, MarkdownConverter)
        self._mapping = TextMapping(change, input_key, output_key)

    def forward(self, record: Record) -> Record:
        return self._mapping(record)


def _markdown(soup: Any, converter: Any, page: str) -> str:
    page = readable(page)
    # Python's parser is the default of markdownify; it nests paragraphs that do not end.
    for parser in ("lxml",) if _slow_for_python(page) else ("html.parser", "lxml"):
        try:
            # BeautifulSoup warns about short texts that look like file names, but not about files.
            converted: str = converter().convert_soup(soup(StringIO(page), parser))
        except RecursionError:
            continue
        return converted
    raise too_deep("html.ToMarkdown")


def _slow_for_python(page: str) -> bool:
    """Return whether Python's parser takes quadratic time: for many tags that never end."""
    tags = page.count("<", page.rfind(">") + 1)
    comments = page.count("<!--", page.rfind("-->") + 1)
    return tags + comments + page.count("<![") > _MOST_UNENDED
