"""`ExternalSort`: sort more entries than memory holds."""

import marshal
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, count
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from dagster_dataops.datasets.durable_files import storage

_OBJECT_BYTES: Final = 64  # of an entry in memory besides its content: the object, its place
_NUMBER: Final = struct.Struct(">Q")
_KEY_LENGTH: Final = struct.Struct(">I")
_BLOCK_LENGTH: Final = struct.Struct("<Q")
_MOST_RUNS: Final = 64  # files that are merged at a time
_MARSHAL_VERSION: Final = 2  # without references between objects, which take a table


class Entry(NamedTuple):
    """An entry in sorted order.

    Attributes:
        key: The sort key.
        number: Its number in insertion order, from 1 on.
        data: The data that was added with the key.
    """

    key: bytes
    number: int
    data: bytes


class ExternalSort:
    """Sorts entries by the bytes of their keys; equal keys stay in insertion order.

    No key may be the beginning of another one: they have one length, or end like those of
    `ordered_key`. Memory takes up to ``max_bytes``, one entry more at most. What exceeds it is in
    files in the folder whose names begin with ``name``.

    An entry is one ``bytes`` in memory: key, number, data, length of the key. A file has blocks of
    sorted entries. Merging takes from all files what is not above the smallest last entry of their
    blocks, and sorts that.
    """

    def __init__(self, folder: Path, max_bytes: int, *, name: str = "run") -> None:
        self._folder, self._name = folder, name
        self._max_bytes = max_bytes // 2  # the rest is for what sorting and writing take
        self._block_bytes = self._max_bytes // (4 * _MOST_RUNS)
        self._entries: list[bytes] = []
        self._bytes = self._added = self._largest = 0
        self._runs: list[Path] = []
        self._numbers = count()

    def add(self, key: bytes, data: bytes) -> None:
        """Add an entry."""
        self._added += 1
        # Also a copy of the right size: a result of orjson that is kept takes 4 KB or more.
        entry = b"".join((key, _NUMBER.pack(self._added), data, _KEY_LENGTH.pack(len(key))))
        self._entries.append(entry)
        size = len(entry)
        self._largest = max(self._largest, size)
        self._bytes += size + _OBJECT_BYTES
        if self._bytes >= self._max_bytes:
            self._spill()

    def __iter__(self) -> Iterator[Entry]:
        """Yield the sorted entries; again from the start on each call."""
        length_of, number_of = _KEY_LENGTH.unpack_from, _NUMBER.unpack_from
        for entry in self._sorted():
            (end,) = length_of(entry, len(entry) - 4)
            (number,) = number_of(entry, end)
            yield Entry(entry[:end], number, entry[end + 8 : -4])

    def data(self) -> Iterator[bytes]:
        """Yield the data of the sorted entries."""
        length_of = _KEY_LENGTH.unpack_from
        for entry in self._sorted():
            yield entry[length_of(entry, len(entry) - 4)[0] + 8 : -4]

    def _sorted(self) -> Iterator[bytes]:
        if not self._runs:
            self._entries.sort()
            return iter(self._entries)
        if self._entries:
            self._spill()
        most = max(2, min(_MOST_RUNS, self._max_bytes // (4 * self._largest or 1)))
        while len(self._runs) > most:
            parts = [self._runs[at : at + most] for at in range(0, len(self._runs), most)]
            self._runs = list(map(self._merge_files, parts))
        return _merged(self._runs)

    def _spill(self) -> None:
        self._entries.sort()
        self._runs.append(self._write(self._entries))
        self._entries = []
        self._bytes = 0

    def _merge_files(self, runs: list[Path]) -> Path:
        merged = self._write(_merged(runs))
        for path in runs:
            path.unlink()
        return merged

    def _write(self, entries: Iterable[bytes]) -> Path:
        path = self._folder / f"{self._name}-{next(self._numbers):06d}"
        with storage(path, "write"), path.open("wb") as file:
            for block in _blocks(entries, self._block_bytes):
                packed = marshal.dumps(block, _MARSHAL_VERSION)
                file.write(_BLOCK_LENGTH.pack(len(packed)))
                file.write(packed)
        return path


def _blocks(entries: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    """Yield the entries in lists of about ``size`` bytes."""
    block: list[bytes] = []
    room = size
    for entry in entries:
        block.append(entry)
        room -= len(entry)
        if room <= 0:
            yield block
            block, room = [], size
    if block:
        yield block


def _merged(runs: Iterable[Path]) -> Iterator[bytes]:
    """Yield the entries of files, sorted."""
    return chain.from_iterable(_merged_blocks([_read(path) for path in runs]))


def _merged_blocks(runs: Iterable[Iterator[list[bytes]]]) -> Iterator[list[bytes]]:
    left = [(block, run) for run in runs if (block := next(run, []))]
    while left:
        limit = min(block[-1] for block, _ in left)
        ready: list[bytes] = []
        unfinished = []
        for block, run in left:
            end = bisect_right(block, limit)
            ready += block[:end]
            rest = block[end:] or next(run, [])
            if rest:
                unfinished.append((rest, run))
        left = unfinished
        ready.sort()
        yield ready


def _read(path: Path) -> Iterator[list[bytes]]:
    with storage(path, "read"), path.open("rb") as file:
        yield from _blocks_in(file)


def _blocks_in(file: BinaryIO) -> Iterator[list[bytes]]:
    while length := file.read(_BLOCK_LENGTH.size):
        packed = file.read(*_BLOCK_LENGTH.unpack(length))
        yield marshal.loads(packed)  # noqa: S302 - our own file
