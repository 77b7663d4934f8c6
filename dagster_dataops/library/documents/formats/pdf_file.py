"""`PdfFile`: PDF files, read by PDFium."""

import re
from collections.abc import Iterator, Mapping
from io import BytesIO
from math import ceil
from pathlib import Path
from threading import RLock
from typing import Any, Final

from dagster_dataops.datasets.file_values.completeness.documents import (
    PDF_END,
    PDF_HEAD,
    fault_of_pdf,
)
from dagster_dataops.errors import FileError
from dagster_dataops.files import File
from dagster_dataops.foundation.override import override
from dagster_dataops.library.documents.formats.document import (
    Document,
    Limits,
    Size,
    Table,
    checked_page,
    damaged,
    described,
    encrypted,
)
from dagster_dataops.library.documents.formats.pdf_lines import markdown_of_lines, text_lines
from dagster_dataops.library.option_values import needs_extra

_DATE: Final = re.compile(
    r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([+-])(\d\d)'?(\d\d)?'?|Z)?"
)
_PDFIUM: Final = RLock()  # PDFium is not made for several threads
_POINTS: Final = 72  # an inch


class PdfFile(Document):
    """An open PDF file."""

    format = "pdf"

    def __init__(self, path: Path, name: str, password: str, limits: Limits) -> None:
        import pypdfium2

        self._name, self._path, self._password = name, path, password
        self._limits, self._error = limits, pypdfium2.PdfiumError
        self._raw = pypdfium2.raw
        _check_end(path, name)
        with _PDFIUM:
            try:
                self._document = pypdfium2.PdfDocument(path, password=password or None)
            except pypdfium2.PdfiumError as error:
                code = error.err_code
                if code in {self._raw.FPDF_ERR_PASSWORD, self._raw.FPDF_ERR_SECURITY}:
                    raise _locked(name, password) from None
                raise damaged(name, "PDFium cannot read it") from None
            self.page_count = len(self._document)
        if not self.page_count:
            self.close()
            raise damaged(name, "it has no pages")
        self._plumber: Any = None

    @override
    def size(self, page: int) -> Size | None:
        checked_page(self._name, page, self.page_count)
        with _PDFIUM:
            try:
                width, height = self._document.get_page_size(page - 1)
            except self._error:
                return None
        return Size(round(width, 2), round(height, 2))

    @override
    def text(self, page: int) -> str:
        with _PDFIUM, self._page(page) as opened:
            text: str = opened.get_textpage().get_text_bounded()
        return text.replace("\r\n", "\n")

    @override
    def has_text(self, page: int) -> bool:
        """Return whether a page has a text object, which may be of white space."""
        kinds = [self._raw.FPDF_PAGEOBJ_TEXT]
        with _PDFIUM, self._page(page) as opened:
            return any(True for _ in opened.get_objects(kinds))

    @override
    def markdown(self, page: int) -> str:
        with _PDFIUM, self._page(page) as opened:
            return markdown_of_lines(text_lines(opened.get_textpage(), self._raw))

    @override
    def tables(self, page: int) -> list[Table]:
        """Return the tables that pdfplumber finds on a page, by their lines."""
        checked_page(self._name, page, self.page_count)
        with needs_extra("documents.Tables of PDF files", "documents"):
            import pdfplumber
        if self._plumber is None:
            self._plumber = pdfplumber.open(self._path, password=self._password)
        plumbed = self._plumber.pages[page - 1]
        try:
            tables = plumbed.extract_tables()
        finally:
            plumbed.close()
        return [
            [[" ".join((cell or "").split()) for cell in row] for row in table] for table in tables
        ]

    @override
    def images(self, page: int) -> Iterator[File]:
        kinds = [self._raw.FPDF_PAGEOBJ_IMAGE]
        with _PDFIUM, self._page(page) as opened:
            yield from map(self._extracted, list(opened.get_objects(kinds)))

    def _extracted(self, image: Any) -> File:
        width, height = image.get_px_size()
        self._check_pixels(width, height, "an image of the page")
        content = BytesIO()
        image.extract(content, fb_format="png")
        return File(content.getvalue())

    @override
    def picture(self, page: int, dpi: int) -> File:
        with _PDFIUM, self._page(page) as opened:
            width, height = (ceil(side * dpi / _POINTS) for side in opened.get_size())
            self._check_pixels(width, height, f"the picture of the page at {dpi} dpi")
            drawn = opened.render(scale=dpi / _POINTS).to_pil()
        content = BytesIO()
        drawn.save(content, "PNG")
        return File(content.getvalue(), "image/png")

    @override
    def metadata(self) -> Mapping[str, str | None]:
        with _PDFIUM:
            entries = self._document.get_metadata_dict()
        return described(
            title=entries.get("Title"),
            author=entries.get("Author"),
            subject=entries.get("Subject"),
            keywords=entries.get("Keywords"),
            created=_iso_date(entries.get("CreationDate", "")),
            modified=_iso_date(entries.get("ModDate", "")),
            producer=entries.get("Producer"),
        )

    @override
    def close(self) -> None:
        with _PDFIUM:
            self._document.close()
        if getattr(self, "_plumber", None) is not None:
            self._plumber.close()

    def _page(self, page: int) -> "_OpenedPage":
        return _OpenedPage(self, checked_page(self._name, page, self.page_count))

    def load(self, page: int) -> Any:
        """Return a page of PDFium."""
        try:
            return self._document[page - 1]
        except self._error:
            raise damaged(self._name, f"PDFium cannot load its page {page:,}") from None

    def _check_pixels(self, width: int, height: int, what: str) -> None:
        most = self._limits.max_pixels
        if width * height > most:
            problem = f"is too large: {what} has {width:,} x {height:,} pixels, more than {most:,}"
            raise FileError(self._name, problem, "raise max_pixels, or leave the page out")


class _OpenedPage:
    """A page of PDFium in a ``with`` block, which closes it and all that was made from it."""

    def __init__(self, document: PdfFile, page: int) -> None:
        self._document, self._number = document, page

    def __enter__(self) -> Any:
        self._page = self._document.load(self._number)
        return self._page

    def __exit__(self, *_: object) -> None:
        self._page.close()


def _check_end(path: Path, name: str) -> None:
    """Check that a file has the end mark of PDF: PDFium reads what is left of a truncated one."""
    with path.open("rb") as file:
        head = file.read(PDF_HEAD)
        size = file.seek(0, 2)
        file.seek(max(0, size - PDF_END))
        problem = fault_of_pdf(head, file.read(), size)
    if problem is not None:
        remedy = "fetch the file again, or leave it out"
        raise FileError(name, f"is truncated: {problem}", remedy)


def _locked(name: str, password: str) -> FileError:
    if password:
        return FileError(name, "is encrypted, and the password does not open it", "correct it")
    return encrypted(name)


def _iso_date(text: str) -> str | None:
    """Return a date of PDF in the form of ISO 8601, as precise as the file states it."""
    date = _DATE.match(text)
    if date is None:
        return text or None
    year, month, day, hour, minute, second, sign, hours, minutes = date.groups()
    written = "-".join(part for part in (year, month, month and day) if part)
    if not (month and day and hour):
        return written
    zone = f"{sign}{hours}:{minutes or '00'}" if sign else "Z" if "Z" in date[0] else ""
    return f"{written}T{hour}:{minute or '00'}:{second or '00'}{zone}"
