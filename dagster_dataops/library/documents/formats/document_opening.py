"""Open a document by its content, and keep the last one open for its next pages."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple
from zipfile import BadZipFile, ZipFile

from dagster_dataops.errors import DataOpsError, FileChangedError, FileError
from dagster_dataops.files import FileReference, same_type, type_of_content, type_of_name
from dagster_dataops.library.documents.formats.book_file import BookFile
from dagster_dataops.library.documents.formats.document import Document, Limits, encrypted
from dagster_dataops.library.documents.formats.slides_file import SlidesFile
from dagster_dataops.library.documents.formats.web_pages import WebPage
from dagster_dataops.library.documents.formats.word_file import WordFile

_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_PDF: Final = "application/pdf"
_HTML: Final = "text/html"
_OLE: Final = "application/x-ole-storage"
_FORMATS: Final[dict[str, Callable[[Path, str, Limits], Document]]] = {  # by media type
    f"{_OFFICE}wordprocessingml.document": WordFile,
    f"{_OFFICE}presentationml.presentation": SlidesFile,
    "application/epub+zip": BookFile,
    _HTML: WebPage,
}
_MAIN_PARTS: Final = (  # texts of [Content_Types].xml, by which an Office file is recognized
    (b"wordprocessingml.document.main+xml", f"{_OFFICE}wordprocessingml.document"),
    (b"wordprocessingml.template.main+xml", f"{_OFFICE}wordprocessingml.document"),
    (b"ms-word.document.macroEnabled.main+xml", f"{_OFFICE}wordprocessingml.document"),
    (b"presentationml.presentation.main+xml", f"{_OFFICE}presentationml.presentation"),
    (b"presentationml.slideshow.main+xml", f"{_OFFICE}presentationml.presentation"),
    (b"ms-powerpoint.presentation.macroEnabled.main+xml", f"{_OFFICE}presentationml.presentation"),
    (b"spreadsheetml.sheet.main+xml", f"{_OFFICE}spreadsheetml.sheet"),
)
_HEAD_BYTES: Final = 4096
_MOST_TYPES_BYTES: Final = 1 << 20
_READ: Final = "PDF, DOCX, PPTX, EPUB and HTML files are read"
_LEAVE_OUT: Final = f"leave the file out: {_READ}"


class OpenDocument(NamedTuple):
    """A document that is open.

    Attributes:
        path: Where it is on this machine.
        name: Its path or URL, for errors.
        document: The document.
        password: Its password; empty for none.
    """

    path: Path
    name: str
    document: Document
    password: str


def media_type_of(path: Path, reference: FileReference) -> str:
    """Return the media type of a document, by its content."""
    name = reference.file
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head.strip(b"\0 \t\r\n\f\xef\xbb\xbf"):
        reason = "is empty" if not head else "begins with nothing but zero bytes and white space"
        raise FileError(name, reason, "fetch the file again, or leave it out")
    declared = reference.media_type or type_of_name(name)
    kind = (_type_of_zip(path) if head.startswith(b"PK") else None) or type_of_content(head)
    if declared is not None and same_type(declared, _HTML) and kind in {None, "application/xml"}:
        kind = declared  # a part of a page, without a head
    if kind == _OLE and declared is not None and declared.startswith(_OFFICE):
        raise encrypted(name, "save it without a password, or leave it out")
    what = kind or "of no known type"
    if declared is not None and not (kind is not None and same_type(kind, declared)):
        source = "the record" if reference.media_type else "its name"
        reason = f"is {what} by its content, {declared} by {source}"
        raise FileError(name, reason, f"correct the name, or {_LEAVE_OUT}")
    if kind is None or not any(same_type(kind, known) for known in (_PDF, *_FORMATS)):
        raise FileError(name, f"is {what}, no document", _LEAVE_OUT)
    return kind


def _type_of_zip(path: Path) -> str | None:
    """Return the media type of a document that is a zip archive, by its parts."""
    try:
        with ZipFile(path) as archive:
            names = set(archive.namelist())
            if "META-INF/container.xml" in names and "[Content_Types].xml" not in names:
                return "application/epub+zip"
            if "[Content_Types].xml" not in names:
                return None
            with archive.open("[Content_Types].xml") as types:
                text = types.read(_MOST_TYPES_BYTES)
    except (BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError):
        return None
    return next((kind for mark, kind in _MAIN_PARTS if mark in text), None)


def opened_document(
    path: Path, reference: FileReference, password: str, limits: Limits
) -> Document:
    """Return the document in a file."""
    kind = media_type_of(path, reference)
    if kind == _PDF:
        from dagster_dataops.library.documents.formats.pdf_file import PdfFile

        return PdfFile(path, reference.file, password, limits)
    format_ = next(form for known, form in _FORMATS.items() if same_type(known, kind))
    return format_(path, reference.file, limits)


class _Kept:
    """The last document of a thread."""

    def __init__(self) -> None:
        self.key: object = None
        self.opened: OpenDocument | None = None
        self.state: tuple[int, ...] = ()
        self._stack = ExitStack()

    def open(self, reference: FileReference, password: str, limits: Limits) -> OpenDocument:
        """Close the last document and open another one."""
        self.close()
        with ExitStack() as stack:
            path = stack.enter_context(_local(reference, limits))
            self.state = _state(path)
            document = opened_document(path, reference, password, limits)
            stack.callback(document.close)
            self._stack = stack.pop_all()
        self.opened = OpenDocument(path, reference.file, document, password)
        self.key = (reference, password)
        return self.opened

    def close(self) -> None:
        """Close the last document. That its file has changed was said for each page."""
        self.key = self.opened = None
        stack, self._stack = self._stack, ExitStack()
        with suppress(FileChangedError):
            stack.close()


@contextmanager
def _local(reference: FileReference, limits: Limits) -> Iterator[Path]:
    with reference.local(limits.max_bytes) as path:
        if not path.is_file():
            problem = "is a folder" if path.is_dir() else "is no plain file"
            raise FileError(reference.file, problem, "name a file")
        yield path


class Documents:
    """Opens documents. The last one of each thread stays open: its next pages need it again."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._thread = threading.local()
        self._all: list[_Kept] = []

    def opened(self, reference: FileReference, password: str) -> OpenDocument:
        """Return a document, which stays open until the next call in this thread."""
        kept: _Kept | None = getattr(self._thread, "kept", None)
        if kept is None:
            kept = self._thread.kept = _Kept()
            self._all.append(kept)
        if kept.opened is None or kept.key != (reference, password):
            return kept.open(reference, password, self._limits)
        if kept.opened.path.exists() and _state(kept.opened.path) != kept.state:
            kept.close()
            problem = "has changed while its pages were read"
            raise FileChangedError(reference.file, problem, "run the operator again")
        return kept.opened

    def close(self) -> None:
        """Close all documents."""
        for kept in self._all:
            with suppress(DataOpsError):
                kept.close()


def _state(path: Path) -> tuple[int, ...]:
    state = os.stat(path)  # noqa: PTH116 - for every page
    return state.st_mtime_ns, state.st_size, state.st_ino
