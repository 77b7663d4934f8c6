"""`LineStarts`: an index of a large jsonl file, to read any line of it in a short time.

It has an entry for about every 256 kB: the first byte of a line, and the numbers of lines and of
records before it. Blank lines are no records.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import orjson

from dagster_dataops.datasets.lines import Interval
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.range_source import Readable, expect, read_range

BLOCK_BYTES: Final = 256 << 10
_FORMAT: Final = 1
_BLANK: Final = re.compile(rb"^[ \t\r\v\f]*(?:\n|\Z)", re.MULTILINE)
_FIELDS: Final = ("starts", "lines", "records")


def _shown_of(text: bytes) -> bytes:
    """Return at most one character of a text, which is blank if the whole text is blank."""
    return text.strip()[:1] or text[:1]


def _numbers() -> "array[int]":
    return array("Q")


@dataclass
class LineStarts:
    """An index of one content of a file.

    Attributes:
        state: The state of the file with this content.
        starts: Byte positions of the first lines of the entries.
        lines: The number of lines before each.
        records: The number of records before each.
        line_count: The number of all lines.
        record_count: The number of all records.
        end: The size of the file in bytes.
    """

    state: FileState
    starts: "array[int]" = field(default_factory=_numbers)
    lines: "array[int]" = field(default_factory=_numbers)
    records: "array[int]" = field(default_factory=_numbers)
    line_count: int = 0
    record_count: int = 0
    end: int = 0

    @classmethod
    def made(
        cls,
        source: Readable,
        interval: Interval,
        state: FileState,
        advance: Callable[[int, int], None],
        *,
        ours: bool,
    ) -> "LineStarts":
        """Read a file, and return its index.

        ``advance`` is called with the number of bytes read, and with that of all. In a file
        that is ``ours``, written by this package, no line is blank.

        Raises:
            OSError: The file cannot be read.
        """
        index = cls(state, end=interval.end)
        expect(source, *interval)
        at, open_line = interval.start, b""  # the beginning of a line, or a part that shows enough
        while at < interval.end:
            block = read_range(source, at, min(BLOCK_BYTES, interval.end - at))
            if not block:
                break
            begin = block.find(b"\n") + 1 if open_line else 0
            if begin:
                index._add(open_line + block[:begin], ours=ours)
            if begin or not open_line:
                index._mark(at + begin)
                index._add(block[begin:], ours=ours)
                open_line = _shown_of(block[block.rfind(b"\n") + 1 :])
            else:
                open_line = open_line if open_line.strip() else _shown_of(block)
            at += len(block)
            advance(at - interval.start, interval.end - interval.start)
        if open_line:
            index._add(open_line + b"\n", ours=ours)
        if index.starts and index.starts[-1] >= index.end:
            index._unmark()
        return index

    def _mark(self, start: int) -> None:
        self.starts.append(start)
        self.lines.append(self.line_count)
        self.records.append(self.record_count)

    def _unmark(self) -> None:
        for name in _FIELDS:
            getattr(self, name).pop()

    def _add(self, text: bytes, *, ours: bool) -> None:
        """Count the newlines of a block, which begins with a line."""
        lines = text.count(b"\n")
        blank = 0 if ours else len(_BLANK.findall(text[: text.rfind(b"\n") + 1])) - bool(lines)
        self.line_count += lines
        self.record_count += lines - max(0, blank)

    def before_line(self, line: int) -> tuple[int, int, int]:
        """Return a position at or before a line, and the indices of the line and record there."""
        return self._before(self.lines, line)

    def before_record(self, record: int) -> tuple[int, int, int]:
        """Return a position at or before a record, and the indices of the line and record there."""
        return self._before(self.records, record)

    def _before(self, numbers: "array[int]", wanted: int) -> tuple[int, int, int]:
        if not self.starts:
            return 0, 0, 0
        at = max(0, bisect_right(numbers, wanted) - 1)
        return self.starts[at], self.lines[at], self.records[at]

    def to_bytes(self) -> bytes:
        """Return the content of its file."""
        head = {
            "format": _FORMAT,
            "state": list(self.state),
            "entries": len(self.starts),
            "line_count": self.line_count,
            "record_count": self.record_count,
            "end": self.end,
        }
        parts = (getattr(self, name).tobytes() for name in _FIELDS)
        return orjson.dumps(head, option=orjson.OPT_APPEND_NEWLINE) + b"".join(parts)

    @classmethod
    def parse(cls, data: bytes) -> "LineStarts | None":
        """Return the index in a file; ``None`` if it is damaged or has another format."""
        head, _, body = data.partition(b"\n")
        try:
            facts = orjson.loads(head)
            size = int(facts["entries"]) * 8
            if facts["format"] != _FORMAT or len(body) != size * len(_FIELDS):
                return None
            index = cls(FileState(*facts["state"]))
            index.line_count, index.record_count = facts["line_count"], facts["record_count"]
            index.end = facts["end"]
        except (ValueError, KeyError, TypeError):
            return None
        for number, name in enumerate(_FIELDS):
            getattr(index, name).frombytes(body[number * size : (number + 1) * size])
        return index

    def blocks(self, interval: Interval) -> Iterator[Interval]:
        """Yield the byte ranges of the entries, which together are all lines."""
        for number, start in enumerate(self.starts):
            last = number + 1 == len(self.starts)
            yield Interval(start, interval.end if last else self.starts[number + 1])
