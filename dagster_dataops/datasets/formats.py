"""Detect files in other formats than JSON Lines, and name the reader for each format."""

from typing import Final

import orjson

from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.range_source import Readable, read_range

_HEAD_BYTES: Final = 64 << 10
_MOST_LINES: Final = 100
_SHOWN: Final = 60  # bytes of a line in messages
_BOM: Final = b"\xef\xbb\xbf"
_PACKED: Final = "use read_jsonl(path), which decompresses files with the suffix {}"
_BINARY: Final = (
    (b"\x1f\x8b", "a gzip file", _PACKED.format(".gz")),
    (b"BZh", "a bzip2 file", _PACKED.format(".bz2")),
    (b"\xfd7zXZ\x00", "an xz file", _PACKED.format(".xz")),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", _PACKED.format(".zst")),
    (b"PAR1", "a Parquet file", "use read_parquet(path)"),
    (b"ARROW1", "an Arrow file", "use read_arrow(path)"),
    (b"WARC/", "a WARC file", "use read_warc(path)"),
    (b"PK\x03\x04", "a zip archive", "unpack it, and use the files inside"),
    (b"%PDF-", "a PDF file", "extract its text first"),
    (b"SQLite format 3\x00", "an SQLite database", "export its rows as JSON Lines"),
)
_ARRAY: Final = "load it with json.load() and pass the list, or write one object per line"
_DELIMITERS: Final = (("\t", "TSV"), (",", "CSV"), (";", "CSV"), ("|", "CSV"))


def check_json_lines(location: Location, source: Readable) -> None:
    """Raise an error for a file in another format, judged by its first lines.

    A file is accepted if one of the first hundred lines looks like a JSON object. Its invalid lines
    are refused one by one when the records are read.

    Args:
        location: Where the file is, for errors.
        source: The open file.
    """
    try:
        head = read_range(source, 0, _HEAD_BYTES)
    except OSError as error:
        raise InputError(str(location), f"cannot be read: {error.strerror}") from error
    lines = _lines(head)
    if not lines or _is_object(lines[0]) or (len(lines) == 1 and lines[0].startswith(b"{")):
        return
    if any(map(_is_object, lines)) and not _is_spread_array(lines):
        return
    binary = _binary(head)
    kind, advice = binary or _text(lines)
    start = lines[0][:_SHOWN].decode(errors="backslashreplace")
    shown = "" if binary else f", and starts with {start!r}"
    raise InputError(str(location), f"looks like {kind}, not like JSON Lines{shown}; {advice}")


def _lines(head: bytes) -> list[bytes]:
    """Return the first non-blank lines. Only a single line may be incomplete."""
    lines = head.removeprefix(_BOM).split(b"\n")
    if len(head) == _HEAD_BYTES and len(lines) > 1:
        lines.pop()
    return [line.strip() for line in lines if line and not line.isspace()][:_MOST_LINES]


def _is_object(line: bytes) -> bool:
    return line.startswith(b"{") and line.endswith(b"}")


def _is_spread_array(lines: list[bytes]) -> bool:
    """Return whether the lines form one array, whose last element may look like a record."""
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
    """Return the format of a text file, and the advice of the error."""
    first = lines[0]
    if first.startswith((b"[", b"{")) or _is_json(first):
        return _json(lines)
    if first.startswith(b"<"):
        return "XML or HTML", "use read_files(path), which yields the whole file"
    text = [line.decode(errors="replace") for line in lines]
    for delimiter, kind in _DELIMITERS:
        if _is_delimited(text, delimiter):
            arguments = "path" if delimiter == "," else f"path, delimiter={delimiter!r}"
            return kind, f"use read_delimited({arguments})"
    return "text", 'use read_text(path, key="text")'


def _json(lines: list[bytes]) -> tuple[str, str]:
    """Return the kind of JSON that has no object on any line, and the advice of the error."""
    if lines[0].startswith(b"{"):
        return "JSON of several lines", "write each record on one line"
    if lines[0].startswith(b"[") and (len(lines) == 1 or not _is_json(lines[0])):
        return "a JSON array", _ARRAY
    return "JSON values that are not objects", "write each record as an object, {...}"


def _is_delimited(lines: list[str], delimiter: str) -> bool:
    """Return whether all rows have the same number of cells, above 1; the last row may be cut."""
    import csv  # slow to import

    try:
        rows = list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:
        return False
    sizes = set(map(len, rows[:-1] or rows))
    return len(sizes) == 1 and sizes != {1}
