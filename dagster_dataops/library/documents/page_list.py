"""``documents.Pages`` and ``documents.Metadata``: list pages, and read metadata."""

from typing import Any

from dagster_dataops.errors import FileError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.documents.document_operator import (
    DocumentOperator,
    documents,
    readable,
)
from dagster_dataops.library.documents.formats.document_opening import OpenDocument
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.operators.outcomes.record_context import OperatorContext
from dagster_dataops.records import Record


class Pages(DocumentOperator, documents):
    """Make one record of each page of a document: PDF, DOCX, PPTX, EPUB or HTML.

    Reads the file in ``input_key``: a reference, a path or a URL. Writes the number of the page to
    ``page_key``, from 1, the number of pages of the document to ``pages_key``, and ``width`` and
    ``height`` in points (72 an inch), ``null`` if the file states none. The records of a document
    are in the order of its pages.

    Pages of a PDF file are counted, not read: a page that ends or stops its parser costs nothing
    here, and later only itself. With ``find_text=True``, ``has_text`` tells whether a page has
    text. Then all pages are read in one call, and one that ends the parser costs its document; a
    retry of the failed records does not look, and writes ``null``. Without it, an empty text of
    ``documents.ToText`` tells the same.

    A page of PPTX is a slide, of EPUB an item of its spine, mostly a chapter. HTML is one page.
    Word has no fixed pages: a page of DOCX ends at an explicit break and where Word began a new
    page when it saved the file; without these the file is one page.

    A file that is missing, empty, truncated, encrypted, an archive, of another type than its name,
    or larger than ``max_bytes``, and a document with more than ``max_pages``, is an error of its
    record. Needs the extra ``documents``. PDF files are read by PDFium (pypdfium2).

    Args:
        page_key: Column of the number of the page, from 1.
        pages_key: Column of the number of pages.
        find_text: Whether ``has_text`` is written.
        max_pages: Largest number of pages of a document.
    """

    def __init__(
        self,
        input_key: str = "file",
        *,
        page_key: str = "page",
        pages_key: str = "pages",
        find_text: bool = False,
        max_pages: PositiveInt = 10_000,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, **kwargs)
        self._page_key, self._pages_key = page_key, pages_key
        self._find_text, self._max_pages = find_text, max_pages
        self._looks = True

    @override
    def open(self, context: OperatorContext) -> None:
        """Begin to read documents."""
        super().open(context)
        self._looks = not context.retries_failed

    def forward(self, record: Record) -> list[Record]:
        opened = self.opened(record)
        count = opened.document.page_count
        if count > self._max_pages:
            problem = f"has {count:,} pages, more than max_pages={self._max_pages:,}"
            raise FileError(opened.name, problem, "raise the limit, or leave the file out")
        return [self._of_page(record, opened, page) for page in range(1, count + 1)]

    def _of_page(self, record: Record, opened: OpenDocument, page: int) -> Record:
        width, height = opened.document.size(page) or (None, None)
        written = {self._page_key: page, self._pages_key: opened.document.page_count}
        result = record | written | {"width": width, "height": height}
        if self._find_text:
            result["has_text"] = self._has_text(opened, page) if self._looks else None
        return result

    def _has_text(self, opened: OpenDocument, page: int) -> bool:
        return readable(opened.name, f"its page {page:,}", opened.document.has_text, page)


class Metadata(DocumentOperator, documents):
    """Read the metadata of a document: title, author, language, dates and others.

    Reads the file in ``input_key`` and writes ``output_key``: a dict with ``format`` (``pdf``,
    ``docx``, ``pptx``, ``epub`` or ``html``), ``pages``, and ``title``, ``author``, ``subject``,
    ``keywords``, ``language``, ``created``, ``modified`` and ``producer``, each a text or ``null``.
    Dates are in the form of ISO 8601, as precise as the document states them. Needs the extra
    ``documents``. Files that cannot be used are errors, as in ``documents.Pages``.

    Args:
        output_key: Where the dict is written.
    """

    def __init__(
        self, input_key: str = "file", *, output_key: str = "metadata", **kwargs: Any
    ) -> None:
        super().__init__(input_key, **kwargs)
        self._written = output_key

    def forward(self, record: Record) -> Record:
        opened = self.opened(record)
        document = opened.document
        metadata = readable(opened.name, "its metadata", document.metadata)
        facts: Record = {"format": document.format, "pages": document.page_count}
        record[self._written] = {**facts, **metadata}
        return record
