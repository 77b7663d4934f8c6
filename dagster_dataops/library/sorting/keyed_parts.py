"""Parts of partitions: keys and data, as dataset operators split their inputs."""

import marshal
from collections.abc import Iterable, Iterator
from typing import Final

from dagster_dataops.library.sorting.spill_lists import partition_count
from dagster_dataops.operators.partitioning import Parts

_GROWTH: Final = 4  # bytes of memory for each byte of the input while it is sorted

Keyed = tuple[bytes, bytes]


def partitions_of_input(size: int, memory: int) -> int:
    """Return the number of partitions of ``size`` bytes of input, of which each fits in memory."""
    return partition_count(size, _GROWTH, memory)


def packed_parts(entries: Iterable[tuple[int, Keyed]], partitions: int) -> Parts:
    """Return the part of each partition, for `entries_of`.

    Args:
        entries: Partition, key and data of each.
        partitions: The number of partitions.
    """
    lists: list[list[Keyed]] = [[] for _ in range(partitions)]
    for partition, entry in entries:
        lists[partition].append(entry)
    return list(map(marshal.dumps, lists))


def entries_of(parts: Parts) -> Iterator[Keyed]:
    """Yield key and data of each entry of a partition."""
    for part in parts:
        yield from marshal.loads(part)  # noqa: S302 - our own file
