"""Find repeated digests among more digests than memory holds.

Digests are stored in a set while they fit in memory. After that, they and all later digests are
partitioned by their first byte, together with their positions, and each partition is searched.
Equal digests are in the same partition, in input order.
"""

import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import not_
from pathlib import Path
from typing import Final

from dagster_dataops.library.sorting.spill_lists import (
    BitArray,
    SpillLists,
    partition_count,
    passes,
)

_SET_BYTES: Final = 128  # maximum memory of a 16-byte digest in a set
_PARTITIONS: Final = 256
_LEAST_PARTITIONS: Final = 64  # small sets are quicker than large ones
_ENTRY: Final = struct.Struct("<16sQ")  # digest and position
_DIGEST: Final = struct.Struct("16s")
_PACKED_BYTES: Final = 20  # a digest and a position in a range


def first_of_equals(digests: Iterator[bytes], scratch: Path, max_bytes: int) -> Iterator[bool]:
    """Yield for each digest whether it is the first of its value.

    Args:
        digests: Digests of 16 bytes, evenly distributed.
        scratch: An empty folder for spilled data: 24 bytes per digest.
        max_bytes: The approximate memory limit, without one bit per digest.
    """
    seen: set[bytes] = set()
    limit = max(1, max_bytes // 2 // _SET_BYTES)
    for digest in digests:
        if digest in seen:
            yield False
        else:
            seen.add(digest)
            yield True
            if len(seen) >= limit:
                yield from _by_partitions(seen, digests, scratch, max_bytes // 2)


def _by_partitions(
    seen: set[bytes], digests: Iterator[bytes], scratch: Path, max_bytes: int
) -> Iterator[bool]:
    """Yield the decisions for the rest of ``digests``; empties ``seen``."""
    partitions = SpillLists(scratch, _PARTITIONS, _ENTRY, max_bytes)
    add, pack = partitions.add, _ENTRY.pack
    while seen:
        digest = seen.pop()
        add(digest[0], pack(digest, 0))  # never marked, because they come first in their partition
    position = -1
    for position, digest in enumerate(digests):
        add(digest[0], pack(digest, position))
    repeats = BitArray(position + 1)
    for number in range(_PARTITIONS):
        _mark_repeats(partitions, number, repeats, max_bytes)
        partitions.drop(number)
    yield from map(not_, repeats)


def _mark_repeats(partitions: SpillLists, number: int, repeats: BitArray, max_bytes: int) -> None:
    turns = passes(partitions.size(number), _SET_BYTES, max_bytes)
    for turn in range(turns):
        seen: set[bytes] = set()
        for digest, position in partitions.read(number):
            if turns > 1 and int.from_bytes(digest[1:4]) % turns != turn:
                continue
            if digest in seen:
                repeats.set(position)
            else:
                seen.add(digest)


def unpacked(digests: bytes) -> Iterator[bytes]:
    """Yield digests of 16 bytes that are joined."""
    return chain.from_iterable(_DIGEST.iter_unpack(digests))


def partitions_of(digests: int, memory: int) -> int:
    """Return the number of partitions of which each fits in memory, at most 256."""
    return partition_count(digests, _SET_BYTES, memory // 2, _LEAST_PARTITIONS)


def split_digests(digests: Iterable[tuple[int, bytes]], partitions: int) -> list[bytes]:
    """Return the part of each partition of numbered digests.

    Args:
        digests: Number and digest of each, in rising order of the numbers.
        partitions: The number of partitions.
    """
    lists: list[tuple[list[int], list[bytes]]] = [([], []) for _ in range(partitions)]
    adders = [
        (lists[first * partitions >> 8][0].append, lists[first * partitions >> 8][1].append)
        for first in range(256)
    ]
    for number, digest in digests:
        add_number, add_digest = adders[digest[0]]
        add_number(number)
        add_digest(digest)
    return [b"".join(own) + array("I", numbers).tobytes() for numbers, own in lists]


def repeats_in(parts: Sequence[bytes], memory: int) -> Iterator[bytes]:
    """Yield for each part the numbers of the digests that are in it or a part before it.

    Args:
        parts: What `split_digests` returned for one partition, of one range after the other.
        memory: The approximate memory limit.
    """
    turns = passes(sum(map(len, parts)) // _PACKED_BYTES, _SET_BYTES, memory)
    if turns == 1:
        yield from map(_Seen().repeats, parts)
        return
    repeats = [array("I") for _ in parts]
    for turn in range(turns):
        seen = _Seen(turn, turns)
        for found, part in zip(repeats, parts, strict=True):
            found.frombytes(seen.repeats(part))
    yield from (array("I", sorted(found)).tobytes() for found in repeats)


class _Seen:
    """The digests that were seen, all or one share of them."""

    def __init__(self, turn: int = 0, turns: int = 1) -> None:
        self._turn, self._turns = turn, turns
        self._digests: set[bytes] = set()

    def repeats(self, part: bytes) -> bytes:
        """Return the numbers of the digests of a part that were seen before; add the others."""
        count = len(part) // _PACKED_BYTES
        numbers = array("I", part[count * _DIGEST.size :])
        pairs: Iterator[tuple[int, bytes]] = zip(
            numbers, unpacked(part[: count * _DIGEST.size]), strict=True
        )
        if self._turns > 1:
            pairs = filter(self._is_of_turn, pairs)
        repeats, digests = array("I"), self._digests
        for number, digest in pairs:
            if digest in digests:
                repeats.append(number)
            else:
                digests.add(digest)
        return repeats.tobytes()

    def _is_of_turn(self, pair: tuple[int, bytes]) -> bool:
        return int.from_bytes(pair[1][1:4]) % self._turns == self._turn


class FirstOfEquals:
    """Keeps the first record of each digest, in partitions; a `Partitioning`.

    Sketches are digests of 16 bytes, which are evenly distributed, as hexadecimal text.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes

    def partitions(self, sketch_bytes: int, memory: int) -> int:
        """Return the number of partitions."""
        return partitions_of(sketch_bytes // (3 * _DIGEST.size), memory)

    def split(self, sketches: Iterator[str], partitions: int) -> tuple[list[bytes], bytes]:
        """Return the part of each partition, and the number of sketches."""
        digests = bytes.fromhex("".join(sketches))
        parts = split_digests(enumerate(unpacked(digests)), partitions)
        return parts, (len(digests) // _DIGEST.size).to_bytes(8)

    def decide(self, parts: Sequence[bytes], scratch: Path, memory: int) -> Iterable[bytes]:  # noqa: ARG002
        """Return the numbers of the records of each range that are repeats."""
        return repeats_in(parts, memory)

    def verdicts(self, decided: Sequence[bytes], rest: bytes) -> Iterator[bool]:
        """Yield whether each record is the first."""
        first = bytearray(b"\1" * int.from_bytes(rest))
        for number in array("I", b"".join(decided)):
            first[number] = 0
        return map(bool, first)
