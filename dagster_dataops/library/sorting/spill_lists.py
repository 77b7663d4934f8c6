"""Structures for selections over more records than memory holds: spilled lists, and bit arrays."""

import math
import struct
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from dagster_dataops.datasets.durable_files import storage

_READ_ENTRIES: Final = 16 << 10
_MOST_PARTITIONS: Final = 256  # the values of the first byte of a digest
_BITS: Final = [tuple(bool(byte >> bit & 1) for bit in range(8)) for byte in range(256)]


class SpillLists:
    """Numbered lists of fixed-size entries, in memory up to a limit, then in files."""

    def __init__(self, folder: Path, count: int, entry: struct.Struct, max_bytes: int) -> None:
        self._folder = folder
        self._entry = entry
        self._buffers = [bytearray() for _ in range(count)]
        self._room = self._max = max(1, max_bytes // entry.size)  # in entries
        self._lengths = [0] * count  # the bytes of each list in files

    def add(self, number: int, entry: bytes) -> None:
        """Append a packed entry to list ``number``."""
        self._buffers[number] += entry
        self._room -= 1
        if not self._room:
            self._spill()

    def _spill(self) -> None:
        for number, buffer in enumerate(self._buffers):
            if buffer:
                path = self._path(number)
                with storage(path, "write"), path.open("ab", buffering=0) as file:
                    view = memoryview(buffer)
                    while view:
                        view = view[file.write(view) :]
                self._lengths[number] += len(buffer)
                self._buffers[number] = bytearray()
        self._room = self._max

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06d}"

    def size(self, number: int) -> int:
        """Return the number of entries in list ``number``."""
        return (self._lengths[number] + len(self._buffers[number])) // self._entry.size

    def read(self, number: int) -> Iterator[tuple[Any, ...]]:
        """Yield the unpacked entries of list ``number``, in insertion order."""
        if self._lengths[number]:
            path = self._path(number)
            with storage(path, "read"), path.open("rb") as file:
                while block := file.read(self._entry.size * _READ_ENTRIES):
                    yield from self._entry.iter_unpack(block)
        yield from self._entry.iter_unpack(self._buffers[number])

    def drop(self, number: int) -> None:
        """Delete list ``number``."""
        self._buffers[number] = bytearray()
        if self._lengths[number]:
            self._lengths[number] = 0
            self._path(number).unlink()


def passes(entries: int, bytes_each: int, max_bytes: int) -> int:
    """Return the number of passes over ``entries`` such that each fits in memory."""
    return max(1, math.ceil(entries * bytes_each / max(1, max_bytes)))


def partition_count(entries: int, bytes_each: int, max_bytes: int, least: int = 16) -> int:
    """Return the number of partitions of ``entries`` of which each fits in memory.

    Args:
        entries: The number of entries, or of bytes.
        bytes_each: Bytes of memory for each.
        max_bytes: Bytes of memory for one partition.
        least: The smallest number; the largest is 256.
    """
    return min(_MOST_PARTITIONS, max(least, passes(entries, bytes_each, max_bytes)))


class BitArray:
    """An array of ``count`` bits, initially all zero."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._bytes = bytearray(count // 8 + 1)

    def set(self, position: int) -> None:
        """Set the bit at ``position``."""
        self._bytes[position >> 3] |= 1 << (position & 7)

    def __getitem__(self, position: int) -> bool:
        return bool(self._bytes[position >> 3] >> (position & 7) & 1)

    def __iter__(self) -> Iterator[bool]:
        return islice(chain.from_iterable(map(_BITS.__getitem__, self._bytes)), self._count)
