"""RecordFile: find records of a jsonl file by index, and their line numbers, block by block."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from dagster_dataops.byte_ranges import opened
from dagster_dataops.datasets.lines import (
    BLOCK_BYTES,
    Interval,
    content_interval,
    next_line_start,
    read_lines,
    split_lines,
)


class FoundLine(NamedTuple):
    """The line of a record: its number, counted from 1, and its text without white space."""

    number: int
    text: bytes


class _LineBlock(NamedTuple):
    """Whole lines of a file.

    Attributes:
        lines: Number of lines before them.
        records: Number of records before them.
        text: Their bytes.
        blank: Whether some of them are blank, and no records.
    """

    lines: int
    records: int
    text: bytes
    blank: bool


class RecordFile:
    """The records of a jsonl file, in blocks of about a megabyte.

    Args:
        path: The file.
        ours: Whether this package wrote the file; then no line is blank.
    """

    def __init__(self, path: Path, *, ours: bool) -> None:
        self._path = path
        self._ours = ours

    def find(self, indices: Iterable[int], longest: int | None = None) -> dict[int, FoundLine]:
        """Return the lines of records, by the index of the record; missing ones are left out.

        Args:
            indices: The indices of the records.
            longest: Number of bytes to cut texts to.
        """
        wanted = sorted(set(indices), reverse=True)
        found: dict[int, FoundLine] = {}
        for block, records, _ in self._blocks():
            after = block.records + records
            if not wanted:
                break
            if wanted[-1] >= after:
                continue
            lines = self._records(block)
            while wanted and wanted[-1] < after:
                index = wanted.pop()
                line = lines[index - block.records]
                found[index] = FoundLine(line.number, line.text[:longest])
        return found

    def index_of(self, line: int) -> int | None:
        """Return the index of the record in a line, counted from 1; ``None`` if it has none."""
        for block, _, lines in self._blocks():
            if line <= block.lines + lines:
                numbers = [one.number for one in self._records(block)]
                return block.records + numbers.index(line) if line in numbers else None
        return None

    def count(self) -> int:
        """Return the number of records."""
        return sum(records for _, records, _ in self._blocks())

    def _blocks(self) -> Iterator[tuple[_LineBlock, int, int]]:
        """Yield each block, the number of its records and the number of its lines."""
        content = content_interval(self._path)
        start, lines, records = content.start, 0, 0
        with opened(self._path) as source:
            while start < content.end:
                goal = min(start + BLOCK_BYTES, content.end)
                cut = next_line_start(source, goal, content.end)
                text = read_lines(source, Interval(start, cut))
                count = text.count(b"\n") + (not text.endswith(b"\n"))
                blank = 0 if self._ours else sum(map(bytes.isspace, split_lines(text)))
                yield _LineBlock(lines, records, text, bool(blank)), count - blank, count
                start, lines, records = cut, lines + count, records + count - blank

    @staticmethod
    def _records(block: _LineBlock) -> list[FoundLine]:
        lines = enumerate(split_lines(block.text), block.lines + 1)
        return [
            FoundLine(number, line.strip())
            for number, line in lines
            if not (block.blank and line.isspace())
        ]
