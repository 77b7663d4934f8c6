"""Recognize files of another format than JSON Lines, and name the reader for that format."""

import csv
import os
from pathlib import Path
from typing import Final

import orjson

from dagster_dataops.errors import InputError

_HEAD_BYTES: Final = 64 << 10
_MOST_LINES: Final = 100
_SHOWN: Final = 60  # bytes of a line
_BOM: Final = b"\xef\xbb\xbf"
_PACKED: Final = "give read_jsonl(path), which unpacks files with the ending {}"
_BINARY: Final = (
    (b"\x1f\x8b", "a gzip file", _PACKED.format(".gz")),
    (b"BZh", "a bzip2 file", _PACKED.format(".bz2")),
    (b"\xfd7zXZ\x00", "an xz file", _PACKED.format(".xz")),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", _PACKED.format(".zst")),
    (b"PAR1", "a Parquet file", "give read_parquet(path)"),
    (b"ARROW1", "an Arrow file", "give read_arrow(path)"),
    (b"WARC/", "a WARC file", "give read_warc(path)"),
    (b"PK\x03\x04", "a zip archive", "unpack it, and give what is inside"),
    (b"%PDF-", "a PDF file", "extract its text first"),
    (b"SQLite format 3\x00", "an SQLite database", "export its rows as JSON Lines"),
)
_ARRAY: Final = "load it with json.load() and give the list, or write an object on each line"
_DELIMITERS: Final = (("\t", "TSV"), (",", "CSV"), (";", "CSV"), ("|", "CSV"))


def check_json_lines(path: Path) -> None:
    """Refuse a file that is another format, judged by its first lines.

    One line among the first hundred that looks like a JSON object is enough to accept it: bad lines
    are refused one by one when the records are read.

    Args:
        path: An existing file.

    Raises:
        InputError: It is another format; the error says which, and what reads it.
    """
    try:
        with path.open("rb") as file:
            head = os.pread(file.fileno(), _HEAD_BYTES, 0)
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error
    lines = _lines(head)
    if not lines or _is_object(lines[0]) or (len(lines) == 1 and lines[0].startswith(b"{")):
        return
    if any(map(_is_object, lines)) and not _is_spread_array(lines):
        return
    binary = _binary(head)
    kind, advice = binary or _text(lines)
    start = lines[0][:_SHOWN].decode(errors="backslashreplace")
    shown = "" if binary else f", and starts with {start!r}"
    raise InputError(str(path), f"looks like {kind}, not like JSON Lines{shown}; {advice}")


def _lines(head: bytes) -> list[bytes]:
    """Return the first lines that are not blank; only a single one may be cut short."""
    lines = head.removeprefix(_BOM).split(b"\n")
    if len(head) == _HEAD_BYTES and len(lines) > 1:
        lines.pop()
    return [line.strip() for line in lines if line and not line.isspace()][:_MOST_LINES]


def _is_object(line: bytes) -> bool:
    return line.startswith(b"{") and line.endswith(b"}")


def _is_spread_array(lines: list[bytes]) -> bool:
    """Whether these are the lines of one array, of which the last element may look like a line."""
    goes_on = any(line.endswith(b",") or line == b"]" for line in lines)
    objects = sum(map(_is_object, lines))
    return lines[0].startswith(b"[") and goes_on and objects <= 1 and not _is_json(lines[0])


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except ValueError:
        return False
    return True


def _binary(head: bytes) -> tuple[str, str] | None:
    for magic, kind, advice in _BINARY:
        if head.startswith(magic):
            return kind, advice
    if b"\0" in head:
        return "a binary file, or text in UTF-16", "convert it to JSON Lines in UTF-8"
    return None


def _text(lines: list[bytes]) -> tuple[str, str]:
    """Return what text is, and what to do with it."""
    first = lines[0]
    if first.startswith((b"[", b"{")) or _is_json(first):
        return _json(lines)
    if first.startswith(b"<"):
        return "XML or HTML", "give read_files(path), which yields the file whole"
    text = [line.decode(errors="replace") for line in lines]
    for delimiter, kind in _DELIMITERS:
        if _is_delimited(text, delimiter):
            given = "path" if delimiter == "," else f"path, delimiter={delimiter!r}"
            return kind, f"give read_delimited({given})"
    return "text", 'give read_text(path, key="text")'


def _json(lines: list[bytes]) -> tuple[str, str]:
    """Return what JSON is that has no object on any line, and what to do with it."""
    if lines[0].startswith(b"{"):
        return "JSON of several lines", "write each record on a line of its own"
    if lines[0].startswith(b"[") and (len(lines) == 1 or not _is_json(lines[0])):
        return "a JSON array", _ARRAY
    return "JSON values that are no objects", "write each record as an object, {...}"


def _is_delimited(lines: list[str], delimiter: str) -> bool:
    """Whether all rows have as many cells, and more than one; the last may be cut short."""
    try:
        rows = list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:
        return False
    sizes = set(map(len, rows[:-1] or rows))
    return len(sizes) == 1 and sizes != {1}
