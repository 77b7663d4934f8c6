"""`KeyedLines`: lines in memory, found by the digests of their keys."""

import struct
from array import array
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

_LEAST_BITS: Final = 8
_DIGEST_BYTES: Final = 16
_ENTRY_BYTES: Final = 24  # a digest and the position of the line
_BUCKET_ENTRIES: Final = 8
_PREFIX_BITS: Final = 32
_PREFIX: Final = struct.Struct(">I")
_PLACE: Final = struct.Struct(">Q")


class KeyedLines:
    """Lines of records and the digests of their keys. A line takes 24 bytes besides its content.

    Lines and entries are in one buffer each, because many objects take several times the memory.
    A digest is searched in the sorted entries of the bucket of its first bits.
    """

    def __init__(self) -> None:
        self._lines = bytearray()
        self._entries = bytearray()
        self._starts = array("L")  # of the buckets
        self._shift = _PREFIX_BITS

    @property
    def size(self) -> int:
        """The bytes that it takes in memory."""
        return len(self._lines) + len(self._entries)

    @property
    def end(self) -> int:
        """The position after the last line."""
        return len(self._lines)

    def add(self, digest: bytes | None, line: bytes) -> None:
        """Add a line, which ends with a newline.

        Args:
            digest: Of the key, 16 bytes, evenly distributed; ``None`` for a line without a key.
            line: The line.
        """
        if digest is not None:
            self._entries += digest + len(self._lines).to_bytes(8)
        self._lines += line

    def places(self, digest: bytes) -> list[int]:
        """Return the positions of the lines with a key, in insertion order; call `sort` before."""
        index, place_at = self._entries, _PLACE.unpack_from
        bucket = _PREFIX.unpack_from(digest)[0] >> self._shift
        start, end = self._starts[bucket : bucket + 2]
        at = index.find(digest, start, end)
        while (at - start) % _ENTRY_BYTES and at >= 0:  # the end of one entry and the next one
            at = index.find(digest, at + 1, end)
        places: list[int] = []
        while at >= 0 and (not places or index.startswith(digest, at)):
            places += place_at(index, at + _DIGEST_BYTES)
            at += _ENTRY_BYTES
        return places

    def line(self, place: int) -> bytes:
        """Return the line at a position, with its newline."""
        return bytes(self._lines[place : self._lines.find(b"\n", place) + 1])

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield position and line of each, in insertion order."""
        place = 0
        while place < len(self._lines):
            line = self.line(place)
            yield place, line
            place += len(line)

    def sort(self) -> None:
        """Prepare the search; no line can be added after that.

        The entries with one first byte are sorted at a time: a list of all would take three times
        their memory.
        """
        unsorted, firsts = self._entries, bytes(self._entries[::_ENTRY_BYTES])
        bits = max(_LEAST_BITS, (len(firsts) // _BUCKET_ENTRIES).bit_length())
        self._shift = _PREFIX_BITS - bits
        counts = array("L", bytes(array("L").itemsize * ((1 << bits) + 1)))
        self._entries = bytearray(len(unsorted))
        end = 0
        for first in range(256):
            entries = sorted(_entries_with(first, firsts, unsorted))
            for entry in entries:
                counts[(int.from_bytes(entry[:4]) >> self._shift) + 1] += _ENTRY_BYTES
            start, end = end, end + len(entries) * _ENTRY_BYTES
            self._entries[start:end] = b"".join(entries)
        self._starts = array("L", accumulate(counts))

    def clear(self) -> None:
        """Remove the lines, and free their memory."""
        self._lines.clear()
        self._entries.clear()


def _entries_with(first: int, firsts: bytes, entries: bytearray) -> Iterator[bytes]:
    """Yield the entries with a first byte, in order."""
    at = firsts.find(first)
    while at >= 0:
        start = at * _ENTRY_BYTES
        yield bytes(entries[start : start + _ENTRY_BYTES])
        at = firsts.find(first, at + 1)
