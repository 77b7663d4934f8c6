"""``html.ToMarkdown``: a whole page as Markdown."""

from io import StringIO
from typing import Any, Final

from typing_extensions import override

from dagster_dataops.library.html.html_source import html, readable, too_deep
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.library.text_mapping import TextOperator

_MOST_UNENDED: Final = 100  # tags for which Python's parser reads on to the end of the page


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
