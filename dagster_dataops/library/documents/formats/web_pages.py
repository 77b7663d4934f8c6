"""Read HTML files (`WebPage`), and HTML in general, as in chapters of EPUB files."""

import base64
import binascii
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from dagster_dataops.errors import FileError
from dagster_dataops.files import File, type_of_content
from dagster_dataops.foundation.override import override
from dagster_dataops.library.documents.formats.document import (
    Document,
    Limits,
    Table,
    checked_page,
    described,
)
from dagster_dataops.library.html import page_data
from dagster_dataops.library.html.html_source import is_deep, readable, too_deep
from dagster_dataops.library.option_values import needs_extra

_DATA: Final = re.compile(r"data:(?P<type>[\w.+/-]*)[^,]{0,100}?(?P<coded>;base64)?,")
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_SOURCES: Final = ("src", "xlink:href", _HREF, "href")
_UTF_16: Final = re.compile(rb"\xff\xfe(?!\0\0)|\xfe\xff")  # not UTF-32
_STYLE: Final = {"heading_style": "ATX", "bullets": "-", "table_infer_header": True}
_READ: Final = "page"  # the column that the operators of the group html read


class HtmlDocument(Document):
    """A document whose pages are HTML. A subclass defines `page`.

    Text is read by resiliparse, Markdown and tables by the operators of the group html.
    """

    def __init__(self, name: str) -> None:
        with needs_extra("reading HTML and EPUB documents", "documents"):
            import bs4  # noqa: F401 - of html.ToMarkdown
            import lxml  # noqa: F401 - of html.Tables
            import markdownify  # noqa: F401
            import resiliparse  # noqa: F401
        self._name = name
        self._markdown = page_data.ToMarkdown(input_key=_READ)
        self._tables = page_data.Tables(input_key=_READ)

    @abstractmethod
    def page(self, number: int) -> str:
        """Return the HTML of a page."""

    @override
    def text(self, page: int) -> str:
        from resiliparse.extract.html2text import extract_plain_text

        html = self.page(page)
        if is_deep(html):
            raise too_deep("documents.ToText")
        text: str = extract_plain_text(html, main_content=False, alt_texts=False)
        return text

    @override
    def markdown(self, page: int) -> str:
        """Return a page as Markdown, in the style of the other formats, without its title."""
        html = self.page(page)
        return self._markdown.converted(html, unread="head > title", **_STYLE).strip()

    @override
    def tables(self, page: int) -> list[Table]:
        tables: Any = self._tables.forward({_READ: self.page(page)})["tables"]
        return list(tables)

    @override
    def images(self, page: int) -> Iterator[File]:
        images = _elements(self.page(page), "img", "image")
        addresses = (
            next((image.get(key) for key in _SOURCES if image.get(key)), "") for image in images
        )
        for source in dict.fromkeys(filter(None, addresses)):
            is_data = source.startswith("data:")
            content = _data(source) if is_data else self.stored(page, source)
            if content:
                yield File(content, type_of_content(content) or "")

    def stored(self, page: int, source: str) -> bytes | None:  # noqa: ARG002 - of subclasses
        """Return the content of an image that the document holds; ``None`` for others."""
        return None


def decoded(content: bytes) -> str:
    """Return the text of a page, by its mark, its declaration or the likeliest encoding.

    Raises:
        ValueError: It is no text, or in UTF-32, which HTML does not allow.
    """
    if b"\0" in content[:1024] and not _UTF_16.match(content):
        msg = "is no HTML: it has zero bytes"
        raise ValueError(msg)
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    encoding = detect_encoding(content, from_html_meta=True) or "utf-8"
    return readable(bytes_to_str(content, encoding))


class WebPage(HtmlDocument):
    """An open HTML file: one page. Its images are those that it holds as ``data:`` addresses."""

    format = "html"
    page_count = 1

    def __init__(self, path: Path, name: str, limits: Limits) -> None:
        super().__init__(name)
        content = path.read_bytes()
        if len(content) > limits.max_bytes:
            problem = f"is too large: it has more than max_bytes={limits.max_bytes:,} bytes"
            raise FileError(name, problem, "raise the limit, or leave the file out")
        try:
            self._page = decoded(content)
        except ValueError as error:
            raise FileError(name, str(error), "correct the name, or leave the file out") from None

    @override
    def metadata(self) -> Mapping[str, str | None]:
        values: Any = page_data.Metadata(input_key=_READ).forward({_READ: self._page})["metadata"]
        head = _head(self._page)
        return described(
            title=head.get("title") or values["title"],
            author=values["author"],
            subject=head.get("description"),
            keywords=head.get("keywords"),
            language=values["lang"],
            created=values["date"],
            producer=head.get("generator"),
        )

    @override
    def page(self, number: int) -> str:
        checked_page(self._name, number, 1)
        return self._page


def _head(page: str) -> dict[str, str]:
    """Return the ``title`` of a page, and its named ``meta`` elements, without those in SVG."""
    facts: dict[str, str] = {}
    for element in _elements(page, "title", "meta"):
        if element.tag == "meta":
            facts.setdefault(str(element.get("name")).lower(), element.get("content", ""))
        elif element.getparent().tag != "svg":
            facts.setdefault("title", " ".join("".join(element.itertext()).split()))
    return facts


def _elements(page: str, *tags: str) -> Iterator[Any]:
    """Yield the elements of a page with one of some names."""
    from lxml import etree

    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True)
    root = etree.fromstring(page.encode(), parser) if page.strip() else None
    return iter(()) if root is None else root.iter(*tags)


def _data(address: str) -> bytes | None:
    """Return the content of a ``data:`` address; ``None`` if it is malformed."""
    head = _DATA.match(address)
    if head is None:
        return None
    content = unquote_to_bytes(address[head.end() :])
    if not head["coded"]:
        return content
    try:
        return base64.b64decode(content)
    except binascii.Error:
        return None
