"""RecordFile: find records of a jsonl file by index, and their line numbers, block by block."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dagster_dataops.datasets.lines import (
    BLOCK_BYTES,
    Interval,
    block_end,
    opened_content,
    read_lines,
    split_lines,
)
from dagster_dataops.foundation.places.bucket import Location


class FoundLine(NamedTuple):
    """The line of a record: its number, counted from 1, and its text without white space."""

    number: int
    text: bytes


class _LineBlock(NamedTuple):
    """Whole lines of a file.

    Attributes:
        text: Their bytes.
        lines: Their number.
        blank: The number of blank ones, which are no records.
        lines_before: Number of lines before them.
        records_before: Number of records before them.
    """

    text: bytes
    lines: int
    blank: int
    lines_before: int
    records_before: int

    @property
    def records_after(self) -> int:
        """The number of records up to the end of the block."""
        return self.records_before + self.lines - self.blank

    def records(self) -> list[FoundLine]:
        """Return the lines of its records."""
        return [
            FoundLine(number, line.strip())
            for number, line in enumerate(split_lines(self.text), self.lines_before + 1)
            if not (self.blank and line.isspace())
        ]


class RecordFile:
    """The records of a jsonl file, in blocks of about a megabyte.

    Args:
        path: The file.
        ours: Whether this package wrote the file; then no line is blank.
    """

    def __init__(self, path: Location, *, ours: bool) -> None:
        self._path = path
        self._ours = ours

    def find(self, indices: Iterable[int], longest: int | None = None) -> dict[int, FoundLine]:
        """Return the lines of records, by the index of the record; missing ones are left out.

        Args:
            indices: The indices of the records.
            longest: Number of bytes to cut texts to.
        """
        wanted = sorted(set(indices), reverse=True)
        by_index: dict[int, FoundLine] = {}
        for block in self._blocks():
            if not wanted:
                break
            if wanted[-1] >= block.records_after:
                continue
            lines = block.records()
            while wanted and wanted[-1] < block.records_after:
                index = wanted.pop()
                line = lines[index - block.records_before]
                by_index[index] = FoundLine(line.number, line.text[:longest])
        return by_index

    def index_of(self, line: int) -> int | None:
        """Return the index of the record in a line, counted from 1; ``None`` if it has none."""
        for block in self._blocks():
            if line <= block.lines_before + block.lines:
                numbers = [record.number for record in block.records()]
                return block.records_before + numbers.index(line) if line in numbers else None
        return None

    def count(self) -> int:
        """Return the number of records."""
        return sum(block.lines - block.blank for block in self._blocks())

    def _blocks(self) -> Iterator[_LineBlock]:
        with opened_content(self._path) as (source, content):
            start, lines, records = content.start, 0, 0
            while start < content.end:
                cut = block_end(source, start, BLOCK_BYTES, content.end)
                text = read_lines(source, Interval(start, cut))
                count = text.count(b"\n") + (not text.endswith(b"\n"))
                blank = 0 if self._ours else sum(map(bytes.isspace, split_lines(text)))
                block = _LineBlock(text, count, blank, lines, records)
                yield block
                start, lines, records = cut, lines + count, block.records_after
