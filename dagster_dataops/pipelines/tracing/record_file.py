"""RecordFile: find records of a jsonl file by index, and their line numbers, block by block."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple, Protocol

from dagster_dataops.datasets.lines import (
    BLOCK_BYTES,
    Interval,
    block_end,
    opened_content,
    read_lines,
    split_lines,
)
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.range_source import Readable, state_of

_FIRST_BYTES: Final = 256 << 10  # of the block that an index names


class FoundLine(NamedTuple):
    """The line of a record: its number, counted from 1, and its text without white space."""

    number: int
    text: bytes


class _LineBlock(NamedTuple):
    """Whole lines of a file.

    Blank lines are no records.
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

    def record(self, index: int) -> FoundLine:
        """Return the line of a record of the file, which is in the block."""
        at = index - self.records_before
        lines = split_lines(self.text)
        if self.blank:
            at = [number for number, line in enumerate(lines) if not line.isspace()][at]
        return FoundLine(self.lines_before + at + 1, lines[at].strip())

    def index_of(self, line: int) -> int | None:
        """Return the index of the record in a line of the file; ``None`` if it is blank."""
        at = line - self.lines_before - 1
        if not self.blank:
            return self.records_before + at
        lines = split_lines(self.text)
        blank = sum(map(bytes.isspace, lines[:at]))
        return None if lines[at].isspace() else self.records_before + at - blank


class LineStart(NamedTuple):
    """The beginning of a line.

    ``lines`` and ``records`` are their numbers before it.
    """

    start: int
    lines: int = 0
    records: int = 0


class RecordStarts(Protocol):
    """An index of one content of a file."""

    @property
    def state(self) -> FileState:
        """The state of the file with this content."""
        ...

    def before_line(self, line: int) -> tuple[int, int, int]:
        """Return the values of a `LineStart` at or before a line, counted from 0."""
        ...

    def before_record(self, record: int) -> tuple[int, int, int]:
        """Return the values of a `LineStart` at or before a record, counted from 0."""
        ...


_INDICES: ContextVar[Callable[[Location], RecordStarts | None]] = ContextVar(
    "indices", default=lambda _: None
)


@contextmanager
def using_indices(index_of: Callable[[Location], RecordStarts | None]) -> Iterator[None]:
    """Find records in the block by indices of files; others are read from their beginning."""
    token = _INDICES.set(index_of)
    try:
        yield
    finally:
        _INDICES.reset(token)


class RecordFile:
    """The records of a jsonl file, in blocks of about a megabyte.

    In a file that is ``ours``, written by this package, no line is blank.
    """

    def __init__(self, path: Location, *, ours: bool) -> None:
        self._path = path
        self._ours = ours

    def find(self, indices: Iterable[int], longest: int | None = None) -> dict[int, FoundLine]:
        """Return the lines of records by index, cut to ``longest`` bytes, without missing ones."""
        by_index: dict[int, FoundLine] = {}
        with opened_content(self._path) as (source, content):
            known = self._index(source)
            blocks, block = self._blocks(source, content), None
            for index in sorted(set(indices)):
                if known is not None and (block is None or index >= block.records_after):
                    start = LineStart(*known.before_record(index))
                    if block is None or start.records > block.records_after:
                        blocks = self._blocks(source, content, start)
                while block is None or index >= block.records_after:
                    block = next(blocks, None)
                    if block is None:
                        return by_index
                line = block.record(index)
                by_index[index] = FoundLine(line.number, line.text[:longest])
        return by_index

    def index_of(self, line: int) -> int | None:
        """Return the index of the record in a line, counted from 1; ``None`` if it has none."""
        with opened_content(self._path) as (source, content):
            known = self._index(source)
            start = None if known is None else LineStart(*known.before_line(line - 1))
            for block in self._blocks(source, content, start):
                if line <= block.lines_before + block.lines:
                    return block.index_of(line)
        return None

    def count(self) -> int:
        """Return the number of records."""
        with opened_content(self._path) as (source, content):
            blocks = self._blocks(source, content)
            return sum(block.lines - block.blank for block in blocks)

    def _index(self, source: Readable) -> RecordStarts | None:
        """Return the index of this content of the file; ``None`` if there is none."""
        index = _INDICES.get()(self._path)
        return index if index is not None and index.state == state_of(source) else None

    def _blocks(
        self, source: Readable, content: Interval, begin: LineStart | None = None
    ) -> Iterator[_LineBlock]:
        """Yield the blocks from the beginning of a line on; from the first without one."""
        start, lines, records = begin or LineStart(content.start)
        start = max(start, content.start)
        while start < content.end:
            size = _FIRST_BYTES if begin is not None and start == begin.start else BLOCK_BYTES
            cut = block_end(source, start, size, content.end)
            text = read_lines(source, Interval(start, cut))
            count = text.count(b"\n") + (not text.endswith(b"\n"))
            blank = 0 if self._ours else sum(map(bytes.isspace, split_lines(text)))
            block = _LineBlock(text, count, blank, lines, records)
            yield block
            start, lines, records = cut, lines + count, block.records_after
