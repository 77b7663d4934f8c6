"""Find repeated digests among more digests than memory holds.

Digests are stored in a set while they fit in memory. After that, they and all later digests are
partitioned by their first byte, together with their positions, and each partition is searched.
Equal digests are in the same partition, in input order.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import is_, not_
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


def split_digests(digests: bytes, partitions: int) -> tuple[list[bytes], bytes]:
    """Return the digests of each partition, and the partition of each digest as a byte.

    Args:
        digests: Digests of 16 bytes, joined.
        partitions: The number of partitions, at most 256.
    """
    numbers = bytes(first * partitions >> 8 for first in range(256))
    order = digests[:: _DIGEST.size].translate(numbers)
    lists: list[list[bytes]] = [[] for _ in range(partitions)]
    adders = [digests_of.append for digests_of in lists]
    for number, digest in zip(order, unpacked(digests), strict=True):
        adders[number](digest)
    return list(map(b"".join, lists)), order


def firsts_in(parts: Sequence[bytes], memory: int) -> Iterator[bytes]:
    """Yield for each part a byte for each of its digests: 1 if it is the first of its value.

    Args:
        parts: What `split_digests` returned for one partition, of one range after the other.
        memory: The approximate memory limit.
    """
    turns = passes(sum(map(len, parts)) // _DIGEST.size, _SET_BYTES, memory)
    if turns == 1:
        seen: dict[bytes, bytes] = {}
        for part in parts:
            digests = list(unpacked(part))  # the first of equals is the object that is kept
            yield bytes(map(is_, digests, map(seen.setdefault, digests, digests)))
        return
    firsts = [bytearray(len(part) // _DIGEST.size) for part in parts]
    for turn in range(turns):
        _mark_firsts(parts, firsts, turn, turns)
    yield from map(bytes, firsts)


def _mark_firsts(
    parts: Sequence[bytes], firsts: Sequence[bytearray], turn: int, turns: int
) -> None:
    seen: set[bytes] = set()
    for part, marks in zip(parts, firsts, strict=True):
        for place, digest in enumerate(unpacked(part)):
            if int.from_bytes(digest[1:4]) % turns == turn and digest not in seen:
                seen.add(digest)
                marks[place] = 1


def in_order(decided: Sequence[bytes], order: bytes) -> Iterator[int]:
    """Yield what `firsts_in` yielded for a range, in the order of its digests.

    Args:
        decided: Of each partition.
        order: The partition of each digest.

    Raises:
        ValueError: The numbers of digests differ.
    """
    if sum(map(len, decided)) != len(order):
        msg = f"partitions decided over {sum(map(len, decided))} of {len(order)} digests"
        raise ValueError(msg)
    return map(next, map(list(map(iter, decided)).__getitem__, order))


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
        """Return the digests of each partition, and the partition of each."""
        return split_digests(bytes.fromhex("".join(sketches)), partitions)

    def decide(self, parts: Sequence[bytes], scratch: Path, memory: int) -> Iterable[bytes]:  # noqa: ARG002
        """Return for each digest of each range whether it is the first of its value."""
        return firsts_in(parts, memory)

    def verdicts(self, decided: Sequence[bytes], rest: bytes) -> Iterator[bool]:
        """Yield whether each record is the first."""
        return map(bool, in_order(decided, rest))
