"""Where the lines of a file begin: eight bytes a line, found in one pass over it."""

import io
import os
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Final
from weakref import WeakValueDictionary

import orjson
from typing_extensions import override

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.records import decode
from dagster_dataops.streams.access import MISSING, Access, Numbered
from dagster_dataops.streams.blocks import opened
from dagster_dataops.streams.failures import Counter

_BLOCK_BYTES: Final = 1 << 20
_BOM: Final = b"\xef\xbb\xbf"


class LineIndex:
    """Where the lines of one content of one file begin, those that are not blank.

    Attributes:
        starts: Their first bytes in order, and the end of the file.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self.starts = array("Q")
        try:
            position = len(_BOM) if os.pread(descriptor, len(_BOM), 0) == _BOM else 0
            size = _BLOCK_BYTES
            while block := os.pread(descriptor, size, position):
                lines = list(io.BytesIO(block))
                if len(block) == size and not block.endswith(b"\n"):
                    lines.pop()  # goes on in the next block
                self._add(position, lines)
                read = sum(map(len, lines))
                position += read
                size = _BLOCK_BYTES if read else 2 * size
        except OSError as error:
            raise StreamSourceError(path, f"cannot be read: {error.strerror}") from error
        self.starts.append(position)

    def _add(self, position: int, lines: list[bytes]) -> None:
        starts = list(accumulate(map(len, lines), initial=position))[:-1]
        if any(map(bytes.isspace, lines)):
            pairs = zip(starts, lines, strict=True)
            starts = [start for start, line in pairs if not line.isspace()]
        self.starts.extend(starts)


_known: Final[WeakValueDictionary[tuple[str, int, int, int, int], LineIndex]] = (
    WeakValueDictionary()  # streams of one file share an index
)


def _index(path: str, descriptor: int) -> LineIndex:
    status = os.fstat(descriptor)
    stamp = (path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    index = _known.get(stamp)
    if index is None:
        index = _known[stamp] = LineIndex(path, descriptor)
    return index


class JsonAccess(Access):
    """The records of a jsonl file by number; its index is kept from epoch to epoch.

    Args:
        path: The file.
        counter: Counts lines that are no records.
    """

    def __init__(self, path: str, counter: Counter) -> None:
        super().__init__(counter)
        self._path = path
        self._index: LineIndex | None = None

    @override
    @contextmanager
    def opened(self) -> Iterator[Numbered]:
        with opened(self._path) as descriptor:
            self._index = _index(self._path, descriptor)
            yield NumberedRecords(self._path, descriptor, self._index, self.counter)


class NumberedRecords(Numbered):
    """The records of a jsonl file that is open."""

    def __init__(self, path: str, descriptor: int, index: LineIndex, counter: Counter) -> None:
        self._path, self._descriptor, self._counter = path, descriptor, counter
        self._starts = index.starts
        self.size = len(index.starts) - 1

    @override
    def item(self, number: int) -> Any:
        start = self._starts[number]
        line = self._read(start, self._starts[number + 1] - start)
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            record = None
        return record if type(record) is dict else self._refused(line, start)

    def _read(self, start: int, length: int) -> bytes:
        try:
            line = os.pread(self._descriptor, length, start)
        except OSError as error:
            raise StreamSourceError(self._path, f"cannot be read: {error.strerror}") from error
        if len(line) < length:
            raise StreamSourceError(self._path, "became shorter while it was read")
        return line

    def _refused(self, line: bytes, start: int) -> Any:
        """Have a line dealt with that is no record."""
        try:
            return decode(line)
        except ValueError as error:
            place = f"{self._path}, line {self._line_number(start)}"
            self._counter.settle(line, StreamSourceError(place, str(error)))
        return MISSING

    def _line_number(self, start: int) -> int:
        blocks = range(0, start, _BLOCK_BYTES)
        lengths = ((at, min(_BLOCK_BYTES, start - at)) for at in blocks)
        return 1 + sum(self._read(at, length).count(b"\n") for at, length in lengths)
