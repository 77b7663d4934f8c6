"""``documents.Join``: pages to documents again."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import xxhash

from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.documents.document_operator import documents, page_of
from dagster_dataops.library.field_keys import text_value
from dagster_dataops.library.sorting.canonical_form import canonical
from dagster_dataops.library.sorting.external_sort import Entry, ExternalSort
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record, decode, encode

_DIGEST_BYTES: Final = 16
_OF_PAGES: Final = ("width", "height", "has_text", "backend")  # of documents.Pages and ToText


class Join(documents):
    """Join the texts of pages to documents again.

    Reads the records of pages in any order: the file in ``file_key``, the number of the page in
    ``page_key``, the number of pages of the document in ``pages_key``, and the text in
    ``input_key``. Writes one record a document: that of its first page, with the texts of its
    pages in order in ``output_key``, ``separator`` between two. The columns ``page_key``,
    ``width``, ``height``, ``has_text`` and ``backend`` are left out.

    ``missing_key`` has the list of the pages that are not there, as they failed or were dropped; it
    is empty for a whole document. A document of which no page is there is known only if the result
    of ``documents.Pages`` is a further input: its records have no ``input_key``, and only tell
    which pages there are. Then the document has the text ``""``.

    Documents are in the order of their first pages with a text, then those without any. Pages of a
    file that is listed several times make as many documents. Joining runs in one process; beyond
    ``max_memory_mb`` MB the pages are sorted in files in the folder for temporary files.

    Args:
        input_key: Column of the text of a page.
        output_key: Column of the text of a document; ``None`` for ``input_key``.
        file_key: Column of the file.
        page_key: Column of the number of the page, from 1.
        pages_key: Column of the number of pages.
        missing_key: Column of the list of missing pages.
        separator: Text between two pages.
        max_memory_mb: Memory in MB before files are used.
    """

    new_records = True

    def __init__(
        self,
        input_key: str = "text",
        output_key: str | None = None,
        *,
        file_key: str = "file",
        page_key: str = "page",
        pages_key: str = "pages",
        missing_key: str = "missing_pages",
        separator: str = "\n\n",
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._text_key, self._written = input_key, output_key or input_key
        self._file_key, self._page_key, self._pages_key = file_key, page_key, pages_key
        self._missing_key, self._separator = missing_key, separator
        self._max_bytes = max_memory_mb << 20

    def forward_batch_input(self, pages: Iterable[Record]) -> Iterator[Record]:
        with TemporaryDirectory(prefix="dataops-pages-") as folder:
            by_file, joined = (
                ExternalSort(Path(folder), self._max_bytes // 2, name=name)
                for name in ("pages", "documents")
            )
            for record in pages:
                by_file.add(self._key(record), encode(record))
            for _, entries in groupby(by_file, lambda entry: entry[0][:_DIGEST_BYTES]):
                for first, document in self._documents(entries):
                    joined.add(first, encode(document))
            for _, _, line in joined:
                yield decode(line)

    def _key(self, record: Record) -> bytes:
        """Return the digest of the file of a page, its number, and 1 if it has no text."""
        page, file = page_of(record, self._page_key), record.get(self._file_key)
        if file is None:
            msg = f"a record has no {self._file_key!r}; give records of documents.Pages"
            raise UnfitRecordError(msg)
        without = bytes([self._text_key not in record])
        return xxhash.xxh3_128_digest(canonical(file)) + page.to_bytes(8) + without

    def _documents(self, entries: Iterable[Entry]) -> Iterator[tuple[bytes, Record]]:
        """Yield the documents of one file, each with its place in the order of all documents.

        The nth record of a page belongs to the nth document.
        """
        groups: tuple[list[_Page], list[_Page]] = [], []  # with a text, without
        for key, number, line in entries:
            page = int.from_bytes(key[_DIGEST_BYTES:-1])
            groups[key[-1]].append(_Page(page, number, line))
        copies = [_copies(pages) for pages in groups]
        for nth in range(max(map(len, copies))):
            pages, known = (copy[nth] if nth < len(copy) else [] for copy in copies)
            first = min(page.position for page in pages or known)
            yield bytes([not pages]) + first.to_bytes(8), self._document(pages, known)

    def _document(self, pages: "list[_Page]", known: "list[_Page]") -> Record:
        records = [decode(page.line) for page in pages]
        document = dict(records[0] if records else decode(known[0].line))
        texts = (text_value(record.get(self._text_key), self._text_key) for record in records)
        numbers = {page.number for page in pages}
        last = self._page_count(document, max(page.number for page in (*pages, *known)))
        for key in (self._page_key, *_OF_PAGES):
            document.pop(key, None)
        document[self._written] = self._separator.join(texts)
        document[self._missing_key] = [n for n in range(1, last + 1) if n not in numbers]
        return document

    def _page_count(self, document: Record, last: int) -> int:
        """Return the number of pages of a document, of which ``last`` is the last one here."""
        count = document.get(self._pages_key)
        if type(count) is not int or count < last:
            msg = (
                f"the column {self._pages_key!r} has {count!r} for page {last:,} of"
                f" {document.get(self._file_key)!r:.200}; it needs the number of pages of the file,"
                " as documents.Pages writes it"
            )
            raise UnfitRecordError(msg)
        return count


class _Page(NamedTuple):
    """A page: its number, the position of its record in the input, and its line."""

    number: int
    position: int
    line: bytes


def _copies(pages: list[_Page]) -> list[list[_Page]]:
    """Divide the records of the pages of a file, sorted by page, into documents."""
    copies: list[list[_Page]] = []
    for _, group in groupby(pages, lambda page: page.number):
        for nth, page in enumerate(group):
            if nth == len(copies):
                copies.append([])
            copies[nth].append(page)
    return copies
