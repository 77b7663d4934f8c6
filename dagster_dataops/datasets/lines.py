"""Lines of a jsonl file and their byte positions.

A line ends at a newline. A carriage return before it is white space, which JSON ignores. The last
line needs no newline. Blank lines are skipped. A UTF-8 byte order mark at the start is skipped.
"""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from dagster_dataops.datasets.published_files import is_result
from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.opening import is_compressed, open_readable
from dagster_dataops.foundation.places.range_source import (
    Readable,
    close_readable,
    expect,
    name_of,
    read_range,
    size_of,
)

BLOCK_BYTES = 1 << 20
_FIRST_BYTES = 16 << 10
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Line(NamedTuple):
    """One line without its newline, and its byte range [start, end) including the newline."""

    start: int
    end: int
    text: bytes

    @property
    def raw(self) -> bytes:
        """The line as in the file, with its newline if it has one."""
        return self.text + b"\n" if self.end - self.start > len(self.text) else self.text


class Interval(NamedTuple):
    """The byte range [start, end) of a file; both are line starts or the end of the file."""

    start: int
    end: int


@contextmanager
def opened_content(location: Location) -> Iterator[tuple[Readable, Interval]]:
    """Yield a file, open inside the block, and the byte range of its lines.

    Both are of the same opening: another file that is put in place meanwhile is not seen.

    Args:
        location: Of a file, or of a folder with its parts.
    """
    _check_name(location)
    try:
        source = open_readable(location)
    except FileNotFoundError:
        raise InputError(str(location), "there is no such file") from None
    except IsADirectoryError:
        reason = "this is a folder; give the path of one jsonl file, or read_jsonl(folder)"
        raise InputError(str(location), reason) from None
    except OSError as error:
        raise InputError(str(location), f"cannot be read: {error.strerror}") from error
    try:
        yield source, interval_of(source, location)
    finally:
        close_readable(source)


def content_interval(location: Location) -> Interval:
    """Return the byte range of the lines of a file: the whole file without a byte order mark.

    The file may be replaced before it is opened again; `opened_content` opens it once.

    Args:
        location: Of a file, or of a folder with its parts.

    Raises:
        InputError: The file is missing, is not a regular file, cannot be read, is UTF-16, or has a
            path that is not UTF-8.
    """
    with opened_content(location) as (_, interval):
        return interval


def interval_of(source: Readable, location: Location) -> Interval:
    """Return the byte range of the lines of an open file; see `content_interval`."""
    if is_compressed(location.name) and is_result(location.name):
        from dagster_dataops.foundation.places.framed_file import check_frames  # few need it

        check_frames(source, str(location))
    try:
        head = read_range(source, 0, len(_BOM))
    except OSError as error:
        raise InputError(str(location), f"cannot be read: {error.strerror}") from error
    if head.startswith(_UTF16):
        raise InputError(str(location), "is UTF-16; convert it to UTF-8")
    return Interval(len(_BOM) if head == _BOM else 0, size_of(source))


def _check_name(location: Location) -> None:
    name = str(location)
    if "\0" in name:
        raise InputError(repr(name), "a path cannot contain a NUL character")
    try:
        name.encode()
    except UnicodeEncodeError:
        shown = name.encode(errors="backslashreplace").decode()
        raise InputError(shown, "its path is not UTF-8 text; rename it or link to it") from None


def read_lines(source: Readable, interval: Interval) -> bytes:
    """Return all bytes of ``interval``.

    A short read is an error, so that half a line is never taken for a line.

    Raises:
        InputError: The file cannot be read, or ends before ``interval`` does.
    """
    length = interval.end - interval.start
    try:
        block = read_range(source, interval.start, length)
    except OSError as error:
        raise InputError(name_of(source), f"cannot be read: {error.strerror}") from error
    if len(block) < length:
        reason = "became shorter while it was read; run again when no program writes to it"
        raise InputError(name_of(source), reason)
    return block


def next_line_start(source: Readable, position: int, end: int) -> int:
    """Return the first line start in [position, end]; ``end`` if there is none."""
    if position >= end:  # nothing to read: a request to an object store costs
        return end
    if not isinstance(source, int) and source.line_near(position) == position:
        return position
    probe = 64 << 10
    at = position - 1  # a newline just before ``position`` makes it a line start
    while at < end:
        block = read_lines(source, Interval(at, min(at + probe, end)))
        newline = block.find(b"\n")
        if newline >= 0:
            return at + newline + 1
        at += len(block)
        probe = BLOCK_BYTES
    return end


def block_end(source: Readable, start: int, size: int, end: int) -> int:
    """Return a line start about ``size`` bytes behind ``start``, at most ``end``.

    In a compressed file it is the start of a frame, if there is one near. So no frame is
    decompressed to find a line, none is read twice, and its text is not copied.
    """
    if start + size >= end:
        return end
    near = None if isinstance(source, int) else source.line_near(start + size)
    if near is not None and start + size // 2 < near <= start + 2 * size:
        return min(near, end)
    return next_line_start(source, start + size, end)


def split_lines(block: bytes) -> list[bytes]:
    """Return the lines of ``block`` with their newlines; six times as fast as ``split``."""
    return list(io.BytesIO(block))


def iterate_lines(source: Readable, intervals: Iterable[Interval]) -> Iterator[Line]:
    """Yield the non-blank lines of ``intervals``, in order."""
    size = _FIRST_BYTES  # a small first block, for callers that need only the first records
    for interval in intervals:
        start = interval.start
        while start < interval.end:
            if size > _FIRST_BYTES:
                expect(source, start, interval.end)
            cut = block_end(source, start, size, interval.end)
            size = BLOCK_BYTES
            for line in split_lines(read_lines(source, Interval(start, cut))):
                end = start + len(line)
                if not line.isspace():
                    yield Line(start, end, line.removesuffix(b"\n"))
                start = end


def line_blocks(source: Readable, interval: Interval, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the whole lines of an interval, about ``size`` bytes at a time, with their position."""
    start = interval.start
    expect(source, start, interval.end)
    while start < interval.end:
        cut = block_end(source, start, size, interval.end)
        yield start, read_lines(source, Interval(start, cut))
        start = cut


class LineCounter:
    """Converts byte offsets to line numbers; offsets must be in rising order."""

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._position = 0
        self._newlines = 0

    def line_at(self, offset: int) -> int:
        """Return the number, from 1, of the line that starts at ``offset``.

        Raises:
            InputError: The file cannot be read, or ends before ``offset``.
        """
        expect(self._source, self._position, offset)
        while self._position < offset:
            end = min(self._position + BLOCK_BYTES, offset)
            block = read_lines(self._source, Interval(self._position, end))
            self._newlines += block.count(b"\n")
            self._position += len(block)
        return self._newlines + 1


def count_records(source: Readable, interval: Interval) -> int:
    """Return the number of records, i.e. non-blank lines, in ``interval``."""
    return sum(1 for _ in iterate_lines(source, [interval]))
