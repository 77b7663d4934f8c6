"""Lines of a jsonl file and their byte positions.

A line ends at a newline; a carriage return before it is white space, which JSON ignores. The
last line needs no newline. Blank lines are no records and are passed over. A UTF-8 byte order
mark at the start is skipped.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from dagster_dataops.datasets.files import read_range
from dagster_dataops.errors import InputError

BLOCK_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Line(NamedTuple):
    """One line without its newline, and the bytes [start, end) it takes with it."""

    start: int
    end: int
    text: bytes


class Interval(NamedTuple):
    """Bytes [start, end) of a file, both at the start of a line or the end of the file."""

    start: int
    end: int


def content_interval(path: Path) -> Interval:
    """Return where the lines of ``path`` are: all of it, less a byte order mark.

    Raises:
        InputError: The file is missing, is no file, cannot be read, or is UTF-16.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(_BOM))
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise InputError(str(path), "there is no such file") from None
    except IsADirectoryError:
        reason = "this is a folder; give the path of one jsonl file"
        raise InputError(str(path), reason) from None
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error
    if head.startswith(_UTF16):
        raise InputError(str(path), "is UTF-16; convert it to UTF-8")
    return Interval(len(_BOM) if head == _BOM else 0, size)


def next_line_start(descriptor: int, position: int, end: int) -> int:
    """Return the first position in [position, end] at which a line starts, at most ``end``."""
    probe = 64 << 10
    at = position - 1  # a newline just before ``position`` means it starts a line itself
    while at < end:
        block = read_range(descriptor, at, min(probe, end - at))
        if not block:
            break
        found = block.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(block)
        probe = BLOCK_BYTES
    return end


def split_lines(block: bytes) -> list[bytes]:
    """Return the lines of ``block`` without their newlines."""
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def iterate_lines(descriptor: int, intervals: Iterable[Interval]) -> Iterator[Line]:
    """Yield the lines of ``intervals`` that are not blank, in order."""
    for interval in intervals:
        start = interval.start
        while start < interval.end:
            cut = next_line_start(descriptor, min(start + BLOCK_BYTES, interval.end), interval.end)
            for text in split_lines(read_range(descriptor, start, cut - start)):
                end = min(start + len(text) + 1, interval.end)
                if text and not text.isspace():
                    yield Line(start, end, text)
                start = end
            start = cut


class LineCounter:
    """Turns byte offsets, given in rising order, into line numbers by counting newlines once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._position = 0
        self._newlines = 0

    def line_at(self, offset: int) -> int:
        """Return the number of the line that starts at ``offset``, counted from 1."""
        while self._position < offset:
            length = min(BLOCK_BYTES, offset - self._position)
            block = read_range(self._descriptor, self._position, length)
            if not block:
                break
            self._newlines += block.count(b"\n")
            self._position += len(block)
        return self._newlines + 1


def count_records(descriptor: int, interval: Interval) -> int:
    """Return how many records, that is non-blank lines, ``interval`` holds."""
    return sum(1 for _ in iterate_lines(descriptor, [interval]))
