"""An index of the lines of a file: eight bytes per line, built in one pass."""

import io
import os
from array import array
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from typing import Any, Final
from weakref import WeakValueDictionary

from dagster_dataops.errors import InputError, StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.range_source import Readable, read_range
from dagster_dataops.records import decode, parse
from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.core.random_access import (
    MISSING,
    ConcatenatedItems,
    IndexedItems,
    RandomAccess,
)
from dagster_dataops.streams.files.blocks import LINE_BYTES, TOO_LONG
from dagster_dataops.streams.files.descriptors import FilePool, PooledFile, naming_text

_BLOCK_BYTES: Final = 1 << 20
_parse, _pread = parse, os.pread  # bound once instead of for every record


class LineIndex:
    """The offsets of the non-blank lines of a file.

    Attributes:
        starts: The offset of each line in order, then the end of the last line.
    """

    def __init__(self, path: str, source: Readable) -> None:
        self.starts = array("Q")
        with naming_text(path):
            has_mark = read_range(source, 0, len(BOM_UTF8)) == BOM_UTF8
            position = len(BOM_UTF8) if has_mark else 0
            size = _BLOCK_BYTES
            while block := read_range(source, position, size):
                lines = list(io.BytesIO(block))
                if len(block) == size and not block.endswith(b"\n"):
                    lines.pop()  # continues in the next block
                self._add(position, lines)
                read = sum(map(len, lines))
                position += read
                if size >= LINE_BYTES and not read:
                    number = _line_number(partial(_read, path, source), position)
                    raise StreamSourceError(f"{path}, line {number}", TOO_LONG)
                size = _BLOCK_BYTES if read else min(2 * size, LINE_BYTES)
        self.starts.append(position)

    def _add(self, position: int, lines: list[bytes]) -> None:
        starts = list(accumulate(map(len, lines), initial=position))[:-1]
        if any(map(bytes.isspace, lines)):
            pairs = zip(starts, lines, strict=True)
            starts = [start for start, line in pairs if not line.isspace()]
        self.starts.extend(starts)


_known: Final[WeakValueDictionary[tuple[str, FileState], LineIndex]] = (
    WeakValueDictionary()  # shared by all streams over one file
)


def _index_of(file: PooledFile) -> LineIndex:
    stamp = (file.path, file.state)
    index = _known.get(stamp)
    if index is None:
        index = _known[stamp] = LineIndex(file.path, file.opened())
    return index


class JsonAccess(RandomAccess):
    """Random access to the records of jsonl files. The line indices are kept across epochs.

    Args:
        paths: The files: at least one, local and uncompressed.
        counter: Counts the lines that are not records.
    """

    def __init__(self, paths: Sequence[str], counter: FailureCounter) -> None:
        super().__init__(counter, self._opened)
        self._paths = paths
        self._indices: list[LineIndex] = []

    @contextmanager
    def _opened(self, counter: FailureCounter) -> Iterator[IndexedItems]:
        with FilePool() as pool:
            pooled = (PooledFile(path, pool) for path in self._paths)
            files = [IndexedRecords(file, _index_of(file), counter) for file in pooled]
            self._indices = [file.index for file in files]
            yield files[0] if len(files) == 1 else ConcatenatedItems(files)


class IndexedRecords(IndexedItems):
    """The records of one jsonl file, by index."""

    def __init__(self, file: PooledFile, index: LineIndex, counter: FailureCounter) -> None:
        self._file, self.index, self._counter = file, index, counter
        self._starts = index.starts
        self._at: Any = _pread if isinstance(file.opened(), int) else _of_frames
        self.size = len(index.starts) - 1

    @override
    def item(self, number: int) -> Any:
        start = self._starts[number]
        try:
            record = _parse(self._at(self._file.opened(), self._starts[number + 1] - start, start))
        except (OSError, InputError, ValueError):
            record = None
        return record if type(record) is dict else self._parse_again(number)

    def _parse_again(self, number: int) -> Any:
        """Parse a line again that is not a record, and handle the failure."""
        start = self._starts[number]
        read = partial(_read, self._file.path, self._file.opened())
        line = read(self._starts[number + 1] - start, start)
        try:
            return decode(line)
        except ValueError as error:
            place = f"{self._file.path}, line {_line_number(read, start)}"
            self._counter.handle(line, StreamSourceError(place, str(error)))
        return MISSING


def _of_frames(source: Any, length: int, start: int) -> bytes:
    return read_range(source, start, length)


def _read(path: str, source: Readable, length: int, start: int) -> bytes:
    with naming_text(path):
        line = read_range(source, start, length)
    if len(line) < length:
        raise StreamSourceError(path, "became shorter while it was read")
    return line


def _line_number(read: Callable[[int, int], bytes], start: int) -> int:
    blocks = range(0, start, _BLOCK_BYTES)
    return 1 + sum(read(min(_BLOCK_BYTES, start - at), at).count(b"\n") for at in blocks)
