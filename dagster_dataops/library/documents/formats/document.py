"""`Document`: the interface of open documents of all formats."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import FileError
from dagster_dataops.files import File

Table = list[list[str]]
"""The texts of the cells of a table, row by row."""

METADATA: Final = (
    "title", "author", "subject", "keywords", "language", "created", "modified", "producer",
)  # fmt: skip
"""The keys of the metadata of every format; each value is a text or ``None``."""


class Size(NamedTuple):
    """The width and height of a page in points, 72 an inch."""

    width: float
    height: float


class Limits(NamedTuple):
    """The largest documents that are read.

    Attributes:
        max_bytes: Of a file, and of the parts that are read from it when they are unpacked.
        max_pixels: Of an image.
    """

    max_bytes: int
    max_pixels: int = 100_000_000


class Document(ABC):
    """An open document. Pages have the numbers from 1.

    Attributes:
        format: The name of its format, such as ``pdf``.
        page_count: The number of its pages.
    """

    format: str
    page_count: int

    @abstractmethod
    def text(self, page: int) -> str:
        """Return the text of a page, in the order in which the file has it."""

    @abstractmethod
    def markdown(self, page: int) -> str:
        """Return the text of a page as Markdown."""

    @abstractmethod
    def tables(self, page: int) -> list[Table]:
        """Return the tables of a page."""

    @abstractmethod
    def images(self, page: int) -> Iterator[File]:
        """Yield the images of a page."""

    @abstractmethod
    def metadata(self) -> Mapping[str, str | None]:
        """Return the metadata of the document, with the keys of `METADATA`."""

    def size(self, page: int) -> Size | None:  # noqa: ARG002 - of formats without sizes
        """Return the size of a page; ``None`` if the format has none."""
        return None

    def has_text(self, page: int) -> bool:
        """Return whether a page has a character that is no white space."""
        return bool(self.text(page).strip())

    def picture(self, page: int, dpi: int) -> File:
        """Return a picture of a page of a PDF file as PNG; other formats have no fixed form."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Close the document."""


def described(**values: Any) -> dict[str, str | None]:
    """Return metadata with all keys of `METADATA`; empty texts are ``None``."""
    return {name: (str(values.get(name) or "").strip() or None) for name in METADATA}


def encrypted(name: str, remedy: str = "give its password as password or unlock_key") -> FileError:
    """Return the error for a document that cannot be read without a password."""
    return FileError(name, "is encrypted", remedy)


def damaged(name: str, reason: str) -> FileError:
    """Return the error for a document whose content violates its format."""
    return FileError(name, f"is damaged: {reason}", "replace the file, or leave it out")


def checked_page(name: str, page: int, pages: int) -> int:
    """Return the number of a page if the document has it."""
    if not 1 <= page <= pages:
        problem = f"has {pages:,} pages, so no page {page:,}"
        raise FileError(name, problem, "make its pages by documents.Pages again")
    return page
