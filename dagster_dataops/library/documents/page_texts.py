"""``documents.ToText``, ``ToMarkdown`` and ``Tables``: read the text and tables of pages."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.foundation.hashing.operational import Operational
from dagster_dataops.foundation.override import override
from dagster_dataops.library.documents.backends import (
    BUILT_IN,
    DOCLING,
    Backend,
    Chain,
    DoclingReader,
    DocumentReader,
    Reader,
)
from dagster_dataops.library.documents.document_operator import (
    DocumentOperator,
    documents,
    pages_of,
)
from dagster_dataops.library.documents.formats.document import Document
from dagster_dataops.operators.outcomes.record_context import OperatorContext
from dagster_dataops.records import Record

_BETWEEN_PAGES: Final = "\n\n"


class Reading(NamedTuple):
    """How the named backends read the content of an operator.

    Attributes:
        feature: The name of the operator.
        of_document: Return the content of a page of a document.
        of_docling: Return the content of a document of docling, which has the page alone.
    """

    feature: str
    of_document: Callable[[Document, int], Any]
    of_docling: Callable[[Any], Any]


class PageOperator(DocumentOperator):
    """An operator that reads the text of pages by a chain of backends.

    Args:
        input_key: Column of the reference to the file, or of its path or URL.
        output_key: Where the result is written.
        page_key: Column of the number of the page, from 1; ``None`` reads all pages as one.
        backend_key: Column of the backend that found the result; ``None`` writes none.
        backends: Names and functions, in the order in which they are tried.
        retry_backends: Backends for a retry of the failed records; ``None`` for the same ones.
        **kwargs: See `DocumentOperator`.
    """

    _reading: ClassVar[Reading]

    def __init__(
        self,
        input_key: str = "file",
        output_key: str = "text",
        *,
        page_key: str | None = "page",
        backend_key: str | None = "backend",
        backends: Sequence[Backend] = (BUILT_IN,),
        retry_backends: Annotated[Sequence[Backend] | None, Operational] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, **kwargs)
        self._written, self._page_key, self._backend_key = output_key, page_key, backend_key
        self._chain = self._usual = Chain("backends", backends, self._known())
        self._for_retries = (
            None
            if retry_backends is None
            else Chain("retry_backends", retry_backends, self._known())
        )

    def _known(self) -> Mapping[str, Callable[[], Reader]]:
        feature, of_document, of_docling = self._reading
        return {
            BUILT_IN: lambda: DocumentReader(of_document),
            DOCLING: lambda: DoclingReader(feature, of_docling),
        }

    @override
    def open(self, context: OperatorContext) -> None:
        """Begin to read documents."""
        super().open(context)
        other = self._for_retries if context.retries_failed else None
        self._chain = other or self._usual
        self._chain.start()

    def forward(self, record: Record) -> Record:
        opened = self.opened(record)
        pages = pages_of(record, self._page_key, opened)
        texts = [self._chain.read(opened, page) for page in pages]
        record[self._written] = self._joined([value for value, _ in texts])
        if self._backend_key is not None:
            names = dict.fromkeys(name for _, name in texts if name)
            record[self._backend_key] = ", ".join(names) or None
        return record

    def _joined(self, values: list[Any]) -> Any:
        """Return the content of several pages as one value."""
        raise NotImplementedError


class _TextOperator(PageOperator):
    @override
    def _joined(self, values: list[Any]) -> str:
        for value in values:
            if value is not None and not isinstance(value, str):
                kind = type(value).__name__
                msg = f"a backend returned {kind}; it must return a text, or None for no text"
                raise UnfitRecordError(msg)
        return _BETWEEN_PAGES.join(value or "" for value in values)


class ToText(_TextOperator, documents):
    r"""Read the text of a page, or of a whole document, without its form.

    Reads the file in ``input_key`` and the number of the page in ``page_key``, as
    ``documents.Pages`` writes them. With ``page_key=None`` a record gets the text of all pages,
    with an empty line between two. Writes ``output_key``, and to ``backend_key`` the backend that
    found the text. A page without one, such as a scan, has the text ``""`` and the backend
    ``null``.

    ``backends`` are tried in order until one finds a text: ``"pypdfium2"`` (PDF files by PDFium,
    other formats by the readers of this package), ``"docling"``, or a function of the path and the
    page, ``def read(path: str, page: int) -> str | None``. An error of one is an error of the
    record if no other finds a text. A page that ends or stops its process is an error, too; a retry
    of the failed records uses ``retry_backends``, and a change of these keeps finished records.
    docling gives a document of another format than PDF as a whole, with its first page.

    The text of PDFium is in the order of the file, with ``\n`` for ``\r\n``. It has U+0002 in place
    of a hyphen and the end of the line where a word is divided; ``text.Normalize`` removes it.
    Fields of forms and notes are not read. DOCX and PPTX have a paragraph a line, and tabs between
    cells; headers, footers, notes, comments, charts, SmartArt and deleted text are not read.
    Consecutive pages of a document open it once. Needs the extra ``documents``, for docling
    ``docling``.

    Args:
        output_key: Column of the text.
    """

    _reading = Reading(
        "documents.ToText",
        lambda document, page: document.text(page),
        lambda document: document.export_to_text(),
    )


class ToMarkdown(_TextOperator, documents):
    """Write a page, or a whole document, as Markdown.

    Reads and writes as ``documents.ToText``, with the same ``backends``. Of a PDF file, lines
    become paragraphs, headings by their size, and items of lists; tables are lines of text, and
    words that are divided at the end of a line are put together.
    DOCX and PPTX have headings, lists, tables, links, bold and italic text. EPUB and HTML are
    written by markdownify, with ``#`` for headings. ``"docling"`` finds columns and tables of
    PDF files, by its models. Needs the extra ``documents``, for docling ``docling``.

    Args:
        output_key: Column of the text.
    """

    _reading = Reading(
        "documents.ToMarkdown",
        lambda document, page: document.markdown(page),
        lambda document: document.export_to_markdown(image_placeholder=""),
    )


class Tables(PageOperator, documents):
    """Find the tables of a page, or of a whole document.

    Reads as ``documents.ToText`` and writes ``output_key``: a list of tables, each a list of rows,
    each a list of the texts of the cells. White space in a cell becomes one space. A cell that
    spans columns is in each of them; in a PDF file it is in the first, and the others are empty.
    Tables of PDF files are found by pdfplumber, by their lines; a
    table without lines is not found. ``"docling"`` finds them by its models. Needs the extra
    ``documents``, for docling ``docling``.

    Args:
        output_key: Column of the list of tables.
    """

    _reading = Reading(
        "documents.Tables",
        lambda document, page: document.tables(page),
        lambda document: list(map(_cells, document.tables)),
    )

    def __init__(
        self,
        input_key: str = "file",
        output_key: str = "tables",
        *,
        page_key: str | None = "page",
        backend_key: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            input_key, output_key, page_key=page_key, backend_key=backend_key, **kwargs
        )

    @override
    def _joined(self, values: list[Any]) -> list[Any]:
        return [table for value in values for table in value or ()]


def _cells(table: Any) -> list[list[str]]:
    """Return the texts of the cells of a table of docling."""
    return [[" ".join(cell.text.split()) for cell in row] for row in table.data.grid]
