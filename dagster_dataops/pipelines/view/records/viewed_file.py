"""`ViewedFile`: an open jsonl file, and the index of the same content."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import xxhash

from dagster_dataops.datasets.lines import Interval, opened_content
from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.bucket import Location, local_path
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.private_folders import private_folder
from dagster_dataops.foundation.places.range_source import Readable, read_range, state_of
from dagster_dataops.pipelines.reporting.excerpts import shown_line
from dagster_dataops.pipelines.view.records.background_work import BackgroundWork, BackgroundWorks
from dagster_dataops.pipelines.view.records.line_starts import LineStarts
from dagster_dataops.records import text_of

LONGEST: Final = 1 << 20  # bytes of a line that are read
_PAGE_BYTES: Final = 8 << 20  # bytes of the lines of a page
_READ_BYTES: Final = 256 << 10
_INDICES: Final = "dagster-dataops-view"


class ReadLine(NamedTuple):
    """A line of a file.

    Attributes:
        number: Its number, counted from 1.
        record: Index of its record.
        size: Its number of bytes.
        text: Its bytes, the first million.
    """

    number: int
    record: int
    size: int
    text: bytes

    @property
    def whole(self) -> bool:
        """Whether ``text`` has all bytes of the line."""
        return len(self.text) == self.size

    def shown(self) -> dict[str, Any]:
        """Return the record; if the line is no JSON object, its text under the key ``line``."""
        if self.whole:
            return shown_line(self.text)
        return {"line": text_of(self.text.decode(errors="replace"))}


@dataclass
class ViewedFile:
    """An open file, and its index once it is made.

    ``work`` is the index, or makes it. It is ``ours`` if this package wrote it.
    """

    location: Location
    source: Readable
    interval: Interval
    state: FileState
    work: BackgroundWork
    ours: bool

    @property
    def index(self) -> LineStarts | None:
        """The index; ``None`` while it is made."""
        index = self.work.result if self.work.ready and not self.work.error else None
        return index if isinstance(index, LineStarts) and index.state == self.state else None

    def lines(self, first: int, count: int) -> list[ReadLine]:
        """Return the records from an index on, at most ``count``, and 8 MB.

        Without an index the file is read from its beginning.
        """
        start, line, record = self.interval.start, 0, 0
        if self.index is not None:
            start, line, record = self.index.before_record(first)
            start = max(start, self.interval.start)
        read: list[ReadLine] = []
        size = 0
        for text, length in self._from(start):
            line += 1
            if (not self.ours and length <= LONGEST and text.isspace()) or not length:
                continue
            if record >= first:
                read.append(ReadLine(line, record, length, text))
                size += len(text)
            record += 1
            if len(read) >= count or size >= _PAGE_BYTES:
                break
        return read

    def records(self, wanted: Iterable[int]) -> dict[int, ReadLine]:
        """Return records by their index; missing ones are left out."""
        read = {}
        for record in sorted(set(wanted)):
            for line in self.lines(record, 1):
                read[record] = line
        return read

    def record_of_line(self, number: int) -> ReadLine | None:
        """Return the record in a line, counted from 1; ``None`` if it has none."""
        if self.index is None or number < 1:
            return None
        _, before, record = self.index.before_line(number - 1)
        lines = self.lines(record, number - before)
        return next((line for line in lines if line.number == number), None)

    def _from(self, start: int, end: int | None = None) -> Iterator[tuple[bytes, int]]:
        """Yield the lines from a position: their first bytes, and their number of bytes."""
        kept, length, at = b"", 0, start
        end = self.interval.end if end is None else end
        while at < end:
            block = read_range(self.source, at, min(_READ_BYTES, end - at))
            if not block:
                break
            at += len(block)
            *ended, rest = block.split(b"\n")
            for piece in ended:
                length += len(piece)
                yield (kept + piece)[:LONGEST], length
                kept, length = b"", 0
            kept, length = (kept + rest)[:LONGEST], length + len(rest)
        if length:
            yield kept, length

    def blocks(self) -> Iterator["LineBlock"]:
        """Yield all lines in blocks.

        Raises:
            InputError: The index is not ready.
        """
        index = self.index
        if index is None:
            raise InputError(str(self.location), "is being indexed; load the page again")
        ends = [*index.records[1:], index.record_count]
        places = zip(index.blocks(self.interval), index.records, ends, strict=True)
        for block, first, end in places:
            size = block.end - block.start
            if size <= LONGEST + _READ_BYTES:
                text = read_range(self.source, block.start, size)
            else:
                text = b"\n".join(line for line, _ in self._from(block.start, block.end))
            yield LineBlock(first, end, block.start, text, self.ours)


class LineBlock(NamedTuple):
    """Some lines of a file.

    Attributes:
        first: Index of the first record.
        end: Index of the record after the last.
        start: Byte position of the first line.
        text: The bytes; of a line of more than a megabyte only the first million.
        ours: Whether this package wrote them.
    """

    first: int
    end: int
    start: int
    text: bytes
    ours: bool

    def lines(self) -> list[bytes]:
        """Return the lines of the records."""
        lines = self.text.removesuffix(b"\n").split(b"\n")
        return lines if self.ours else [line for line in lines if line and not line.isspace()]


@contextmanager
def indexed(
    location: Location, works: BackgroundWorks, *, ours: bool = True
) -> Iterator[ViewedFile]:
    """Yield a file, open in the block; its index is made in the background if it is not there.

    Both are of the same content: a file that is put in its place meanwhile is not seen.

    Raises:
        InputError: It is missing, or cannot be read.
    """
    with opened_content(location) as (source, interval):
        state = state_of(source)

        def make(work: BackgroundWork) -> LineStarts:
            return _index_of(location, state, work, ours=ours)

        work = works.begun(("index", str(location), state), make, urgent=True)
        yield ViewedFile(location, source, interval, state, work, ours)


def ready_index(location: Location, works: BackgroundWorks) -> LineStarts | None:
    """Return the index of a file of this machine; ``None`` while it is made in the background."""
    if local_path(location) is not None:
        with suppress(InputError), indexed(location, works, ours=False) as file:
            return file.index
    return None


def _index_of(
    location: Location, state: FileState, work: BackgroundWork, *, ours: bool
) -> LineStarts:
    """Return the index of a content of a file, from its own file if that is there."""
    path = _path_of(location)
    with suppress(OSError):
        index = LineStarts.parse(path.read_bytes())
        if index is not None and index.state == state:
            return index
    with opened_content(location) as (source, interval):
        if state_of(source) != state:
            raise InputError(str(location), "was replaced meanwhile; load the page again")
        new = LineStarts.made(source, interval, state, work.advance, ours=ours)
    with suppress(OSError):  # then it is made again by the next server
        draft = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
        draft.write_bytes(new.to_bytes())
        draft.replace(path)
    return new


def _path_of(location: Location) -> Path:
    name = xxhash.xxh3_128_hexdigest(str(location).encode(errors="surrogateescape"))
    return private_folder(_INDICES) / f"{name}.lines"
