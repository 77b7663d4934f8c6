"""Find repeated digests among more digests than memory holds.

Digests are stored in a set while they fit in memory. After that, they and all later digests are
partitioned by their first byte, together with their positions, and each partition is searched.
Equal digests are in the same partition, in input order.
"""

import struct
from collections.abc import Iterator
from operator import not_
from pathlib import Path
from typing import Final

from dagster_dataops.library.sorting.spill_lists import BitArray, SpillLists, passes

_SET_BYTES: Final = 128  # maximum memory of a 16-byte digest in a set
_PARTITIONS: Final = 256
_ENTRY: Final = struct.Struct("<16sQ")  # digest and position


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
