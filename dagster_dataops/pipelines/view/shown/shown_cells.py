"""Cells: values of records for the tables of pages, as texts with marks, and files."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import orjson

from dagster_dataops.datasets.file_values.file_contents import is_reference
from dagster_dataops.datasets.file_values.media_types import type_of_name
from dagster_dataops.foundation.places.url_forms import is_url
from dagster_dataops.pipelines.reporting.excerpts import text_of_value
from dagster_dataops.pipelines.reporting.word_changes import TextPiece, marked
from dagster_dataops.records import text_of

SHORT: Final = 280  # characters of a value in a table
LONG: Final = 64_000  # of a value on the page of its record
MOST_COLUMNS: Final = 60
_MOST_FILES: Final = 12  # of a value
_BEFORE: Final = 60  # characters before the first mark
MEDIA: Final = ("image", "audio", "video")


class ShownFile(NamedTuple):
    """A file that a value names.

    Attributes:
        kind: ``image``, ``audio`` or ``video``.
        name: Its path or name.
        query: The part of its address after the question mark.
    """

    kind: str
    name: str
    query: str


@dataclass(frozen=True)
class Cell:
    """A value.

    Attributes:
        pieces: Its text in parts.
        left: The number of characters that are not shown.
        files: The files that it names.
        values_left: The number of values of a list that were not searched for files.
        number: Whether it is a number.
        missing: Whether the record lacks the column.
    """

    pieces: Sequence[TextPiece] = ()
    left: int = 0
    files: Sequence[ShownFile] = ()
    values_left: int = 0
    number: bool = False
    missing: bool = False


@dataclass(frozen=True)
class Row:
    """A record of a page."""

    number: int
    record: Mapping[str, Any]
    cells: Sequence[Cell] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def columns_of_rows(records: Sequence[Mapping[str, Any]]) -> tuple[list[str], int]:
    """Return the first columns of records, and the number of the others."""
    names = list(dict.fromkeys(name for record in records for name in record))
    return names[:MOST_COLUMNS], max(0, len(names) - MOST_COLUMNS)


def cell(
    record: Mapping[str, Any],
    column: str,
    line: int,
    marks: Sequence[str] = (),
    patterns: Sequence[Any] = (),
    length: int = SHORT,
) -> Cell:
    """Return a value of a record.

    ``line`` is for the addresses of files. The texts ``marks`` and the places of ``patterns``,
    compiled regular expressions, are marked.
    """
    if column not in record:
        return Cell(missing=True)
    value = record[column]
    text = _indented(value) if length > SHORT else text_of_value(value)
    start = _start(text, marks, length)
    shown = text[start : start + length]
    pieces = marked(shown, marks, patterns)
    if start:
        pieces = [TextPiece("…"), *pieces]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    files = list(files_in(value, column, line))
    values_left = max(0, len(value) - _MOST_FILES) if isinstance(value, list) else 0
    return Cell(pieces, len(text) - start - len(shown), files, values_left, number)


def _indented(value: object) -> str:
    """Return a value as text: a string unchanged, any other value as JSON with indents."""
    with suppress(TypeError):  # an integer beyond 64 bits, for example
        if not isinstance(value, str):
            return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return text_of_value(value)


def _start(text: str, marks: Sequence[str], length: int) -> int:
    """Return where an excerpt begins, so that it has the first mark."""
    if len(text) <= length or not marks:
        return 0
    low = text[: 1 << 20].lower()
    places = [at for mark in marks if mark and (at := low.find(mark.lower())) >= 0]
    return max(0, min(places) - _BEFORE) if places and min(places) > length - _BEFORE else 0


def files_in(value: object, column: str, line: int) -> Iterator[ShownFile]:
    """Yield the images, sounds and films that a value names, which are on this machine."""
    items = list(enumerate(value[:_MOST_FILES])) if isinstance(value, list) else [(None, value)]
    for at, item in items:
        if not is_reference(item):
            continue
        assert isinstance(item, dict)  # noqa: S101 - it is a reference
        kind = str(item.get("media_type") or type_of_name(item["file"]) or "").partition("/")[0]
        if kind in MEDIA and is_local(item["file"]):
            path = [("line", str(line)), ("column", column)]
            path += [("at", str(at))] if at is not None else []
            yield ShownFile(kind, text_of(item["file"]), urlencode(path))


def is_local(file: str) -> bool:
    """Return whether a file is on this machine, or below a root: the view asks no other server."""
    return not is_url(file.partition("#")[0]) and "://" not in file
