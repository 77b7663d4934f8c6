"""``documents.Images`` and ``documents.ToImage``: pictures in pages, and pictures of pages."""

from typing import Any

from dagster_dataops.errors import FileError
from dagster_dataops.files import File
from dagster_dataops.library.documents.document_operator import (
    DocumentOperator,
    documents,
    page_of,
    pages_of,
    readable,
)
from dagster_dataops.library.documents.formats.document_opening import OpenDocument
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record


class Images(DocumentOperator, documents):
    """Make one record of each image in a page, or in a whole document.

    Reads the file in ``input_key`` and the page in ``page_key``, as ``documents.ToText``. Writes
    the image to ``output_key``, as a file that is stored once by its content, and its number, from
    0, to ``index_key``. A page without images is dropped for the reason ``no_images``.

    Images of PDF files are JPEG or JPEG 2000 as they are, others become PNG. Those of DOCX, PPTX
    and EPUB are the files in them; those of HTML are its ``data:`` addresses, without malformed
    ones. Images elsewhere are not fetched. An image with more than ``max_pixels`` is an error of
    its page. Needs the extra ``documents``.

    Args:
        output_key: Column of the image.
        page_key: Column of the number of the page, from 1; ``None`` reads all pages.
        index_key: Column of the number of the image, from 0; ``None`` writes none.
        max_pixels: Largest number of pixels of an image in PDF.
    """

    def __init__(
        self,
        input_key: str = "file",
        output_key: str = "image",
        *,
        page_key: str | None = "page",
        index_key: str | None = "image_index",
        max_pixels: PositiveInt = 100_000_000,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, **kwargs)
        self._written, self._page_key, self._index_key = output_key, page_key, index_key
        self._limits = self._limits._replace(max_pixels=max_pixels)

    def forward(self, record: Record) -> Any:
        opened = self.opened(record)
        pages = pages_of(record, self._page_key, opened)
        files = [file for page in pages for file in self._images(opened, page)]
        copies: list[dict[str, Any]] = [record | {self._written: file} for file in files]
        if self._index_key is not None:
            for number, copy in enumerate(copies):
                copy[self._index_key] = number
        return copies or Drop("no_images")

    def _images(self, opened: OpenDocument, page: int) -> list[File]:
        def images() -> list[File]:
            return list(opened.document.images(page))

        return readable(opened.name, f"an image of its page {page:,}", images)


class ToImage(DocumentOperator, documents):
    """Draw a page of a PDF file as a picture, for a model that reads pictures.

    Reads the file in ``input_key`` and the page in ``page_key``. Writes ``output_key``: a PNG file
    that is stored once by its content. A picture with more than ``max_pixels`` is an error, and so
    is a document of another format: convert it to PDF before. Needs the extra ``documents``. The
    work is done by PDFium.

    Args:
        output_key: Column of the picture.
        page_key: Column of the number of the page, from 1.
        dpi: Pixels an inch; a page of A4 has 1,240 x 1,754 pixels with 150.
        max_pixels: Largest number of pixels of a picture.
    """

    def __init__(
        self,
        input_key: str = "file",
        output_key: str = "image",
        *,
        page_key: str = "page",
        dpi: PositiveInt = 150,
        max_pixels: PositiveInt = 100_000_000,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, **kwargs)
        self._written, self._page_key, self._dpi = output_key, page_key, dpi
        self._limits = self._limits._replace(max_pixels=max_pixels)

    def forward(self, record: Record) -> dict[str, Any]:
        opened = self.opened(record)
        page = page_of(record, self._page_key)
        what, form = f"its page {page:,}", opened.document.format
        if form != "pdf":
            problem = f"is {form}, whose pages have no fixed form to draw"
            raise FileError(opened.name, problem, "convert the file to PDF before")
        picture = readable(opened.name, what, opened.document.picture, page, self._dpi)
        return record | {self._written: picture}
