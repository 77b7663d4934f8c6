"""Select records that share no bucket, with more buckets than memory holds.

Each record is in several buckets, identified by 64-bit numbers. In input order, a record is kept
if none of its buckets contains a record that was kept before.

The buckets of kept records are stored in a set while they fit in memory. After that, three steps
follow. First, (bucket, record) pairs are partitioned by the highest byte of the bucket, so that all
records of a bucket are in one partition. Second, buckets with a single record are dropped, because
they affect nothing, and the others are renumbered. Third, the pairs are partitioned by record, and
records are decided one after another with one bit per bucket.
"""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from dagster_dataops.datasets.durable_files import make_folder
from dagster_dataops.library.algorithms.spill_lists import BitArray, SpillLists, passes

_SET_BYTES: Final = 96  # maximum memory of a 64-bit integer in a set
_LIST_BYTES: Final = 160  # memory per bucket in a dict of lists
_PARTITIONS: Final = 256
_ENTRY: Final = struct.Struct("<QQ")


def first_in_buckets(
    records: Iterator[Sequence[int]], scratch: Path, max_bytes: int
) -> Iterator[bool]:
    """Yield for each record whether it is kept.

    Args:
        records: The buckets of each record, evenly distributed over 64 bits.
        scratch: An empty folder for spilled data: 16 to 32 bytes per bucket of a record.
        max_bytes: The approximate memory limit, without one bit per bucket of a record.
    """
    taken: set[int] = set()
    limit = max(1, max_bytes // 2 // _SET_BYTES)
    for buckets in records:
        kept = taken.isdisjoint(buckets)
        yield kept
        if kept:
            taken.update(buckets)
            if len(taken) >= limit:
                yield from _SpilledSelection(scratch, max_bytes // 2).decisions(taken, records)


class _SpilledSelection:
    """The second phase, when memory is full. Records count from 1; 0 is any record kept before."""

    def __init__(self, scratch: Path, max_bytes: int) -> None:
        self._scratch = scratch
        self._max_bytes = max_bytes
        self._records = 0
        self._entries = 0

    def decisions(self, taken: set[int], records: Iterator[Sequence[int]]) -> Iterator[bool]:
        """Yield the decisions for ``records``; empties ``taken``."""
        by_bucket = self._spill_lists("buckets", _PARTITIONS)
        self._partition_entries(taken, records, by_bucket)
        most = self._max_bytes // _LIST_BYTES
        width = max(1, most * self._records // max(1, self._entries))  # records at a time
        by_record = self._spill_lists("records", self._records // width + 1)
        owned = BitArray(self._entries)  # whether a shared bucket belongs to a kept record
        shared = 0
        for number in range(_PARTITIONS):
            for bucket, record in self._shared(by_bucket, number, shared):
                shared = max(shared, bucket + 1)
                if record:
                    by_record.add(record // width, _ENTRY.pack(record, bucket))
                else:
                    owned.set(bucket)
            by_bucket.drop(number)
        for number in range(len(by_record)):
            first = max(1, number * width)
            records_now = range(first, min((number + 1) * width, self._records + 1))
            yield from _decide(records_now, by_record.read(number), owned)
            by_record.drop(number)

    def _spill_lists(self, name: str, count: int) -> SpillLists:
        folder = self._scratch / name
        make_folder(folder)
        return SpillLists(folder, count, _ENTRY, self._max_bytes // 2)

    def _partition_entries(
        self, taken: set[int], records: Iterator[Sequence[int]], by_bucket: SpillLists
    ) -> None:
        add, pack = by_bucket.add, _ENTRY.pack
        self._entries = len(taken)
        while taken:
            bucket = taken.pop()
            add(bucket >> 56, pack(bucket, 0))
        for buckets in records:
            self._records += 1
            self._entries += len(buckets)
            for bucket in buckets:
                add(bucket >> 56, pack(bucket, self._records))

    def _shared(self, by_bucket: SpillLists, number: int, count: int) -> Iterator[tuple[int, int]]:
        """Yield (bucket, record) for buckets with several records, renumbered from ``count``."""
        turns = passes(by_bucket.size(number), 2 * _SET_BYTES, self._max_bytes)
        for turn in range(turns):
            once: set[int] = set()
            several: dict[int, int] = {}
            for bucket, _ in by_bucket.read(number):
                if bucket % turns != turn:
                    continue
                if bucket in once:
                    several.setdefault(bucket, count + len(several))
                else:
                    once.add(bucket)
            once.clear()
            count += len(several)
            for bucket, record in by_bucket.read(number):
                if bucket in several:
                    yield several[bucket], record


def _decide(records: range, entries: Iterator[tuple[int, int]], owned: BitArray) -> Iterator[bool]:
    """Yield the decisions for consecutive ``records``, and mark the buckets of kept ones."""
    buckets_of: dict[int, list[int]] = {}
    for record, bucket in entries:
        buckets_of.setdefault(record, []).append(bucket)
    for record in records:
        buckets = buckets_of.get(record, ())
        kept = not any(map(owned.__getitem__, buckets))
        if kept:
            for bucket in buckets:
                owned.set(bucket)
        yield kept
