"""`KeyedLines`: lines in memory, found by the digests of their keys."""

import struct
from array import array
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

_PART_BITS: Final = 8
_PARTS: Final = 1 << _PART_BITS
_DIGEST_BYTES: Final = 16
_ENTRY_BYTES: Final = 24  # a digest and the position of the line
_BUCKET_ENTRIES: Final = 8
_PREFIX_BITS: Final = 32
_PREFIX: Final = struct.Struct(">I")
_PLACE: Final = struct.Struct(">Q")


class KeyedLines:
    """Lines of records and the digests of their keys. A line takes 24 bytes besides its content.

    All lines are in one buffer, because many objects take several times the memory. A digest is
    searched in the sorted entries with its first byte, in the bucket of its first bits. These
    entries are sorted where they are: a copy of all would stay in memory as holes.
    """

    def __init__(self) -> None:
        self._lines = bytearray()
        self._parts = [bytearray() for _ in range(_PARTS)]  # entries by the first byte
        self._rows = 0
        self._starts = array("L")  # of the buckets, as if the parts were one
        self._firsts = array("L")  # of the parts
        self._shift = _PREFIX_BITS

    @property
    def size(self) -> int:
        """The bytes that it takes in memory."""
        return len(self._lines) + self._rows * _ENTRY_BYTES

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
            self._parts[digest[0]] += digest + len(self._lines).to_bytes(8)
            self._rows += 1
        self._lines += line

    def places(self, digest: bytes) -> list[int]:
        """Return the positions of the lines with a key, in insertion order; call `sort` before."""
        first, place_at = digest[0], _PLACE.unpack_from
        index, before = self._parts[first], self._firsts[first]
        bucket = _PREFIX.unpack_from(digest)[0] >> self._shift
        start = self._starts[bucket] - before
        end = self._starts[bucket + 1] - before
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
        """Prepare the search; no line can be added after that."""
        bits = max(_PART_BITS, (self._rows // _BUCKET_ENTRIES).bit_length())
        self._shift = _PREFIX_BITS - bits
        counts = array("L", bytes(array("L").itemsize * ((1 << bits) + 1)))
        for part in self._parts:
            places = range(0, len(part), _ENTRY_BYTES)
            entries = sorted(bytes(part[at : at + _ENTRY_BYTES]) for at in places)
            for entry in entries:
                counts[(int.from_bytes(entry[:4]) >> self._shift) + 1] += _ENTRY_BYTES
            part[:] = b"".join(entries)
        self._starts = array("L", accumulate(counts))
        self._firsts = array("L", self._starts[:: 1 << (bits - _PART_BITS)])

    def clear(self) -> None:
        """Remove the lines, and free their memory."""
        self._lines.clear()
        for part in self._parts:
            part.clear()
        self._rows = 0
