"""Chooses records of which no two share a bucket, among more buckets than memory holds.

Every record lies in some buckets, each known by a number of 64 bits. In input order, a record is
kept if no record kept before lies in one of its buckets.

As long as the buckets of kept records fit into memory they are held in a set. Beyond that, three
steps follow. Bucket numbers are divided by their highest byte, each with its record, so that all
records of a bucket meet in one part. There, buckets of a single record are left out, for they
decide nothing, and the others counted through. What is left is divided by record, so that
records can be decided one after the other with a bit a bucket.
"""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from dagster_dataops.datasets.durable_files import make_folder
from dagster_dataops.library.algorithms.spill_lists import Bits, Partitions, passes

_SET_BYTES: Final = 96  # what a set takes for an integer of 64 bits, at worst
_LIST_BYTES: Final = 160  # what a record's buckets take in a dict of lists, for each bucket
_PARTS: Final = 256
_ENTRY: Final = struct.Struct("<QQ")


def first_in_buckets(
    records: Iterator[Sequence[int]], scratch: Path, max_bytes: int
) -> Iterator[bool]:
    """Yield for each record whether it is kept.

    Args:
        records: The buckets that a record lies in, evenly distributed over 64 bits.
        scratch: An empty folder for what memory does not hold: 16 to 32 bytes a bucket and record.
        max_bytes: About how much memory may be taken; a bit a bucket and record comes on top.
    """
    taken: set[int] = set()
    limit = max(1, max_bytes // 2 // _SET_BYTES)
    for buckets in records:
        kept = taken.isdisjoint(buckets)
        yield kept
        if kept:
            taken.update(buckets)
            if len(taken) >= limit:
                yield from _Rest(scratch, max_bytes // 2).verdicts(taken, records)


class _Rest:
    """What comes once memory is full. Records count from 1; 0 is whatever was kept before."""

    def __init__(self, scratch: Path, max_bytes: int) -> None:
        self._scratch = scratch
        self._max_bytes = max_bytes
        self._records = 0
        self._entries = 0

    def verdicts(self, taken: set[int], records: Iterator[Sequence[int]]) -> Iterator[bool]:
        """Yield the verdicts on ``records``; empties ``taken``."""
        by_bucket = self._partitions("buckets", _PARTS)
        self._divide(taken, records, by_bucket)
        most = self._max_bytes // _LIST_BYTES
        width = max(1, most * self._records // max(1, self._entries))  # records at a time
        by_record = self._partitions("records", self._records // width + 1)
        owned = Bits(self._entries)  # whether a shared bucket belongs to a kept record
        shared = 0
        for number in range(_PARTS):
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

    def _partitions(self, name: str, count: int) -> Partitions:
        folder = self._scratch / name
        make_folder(folder)
        return Partitions(folder, count, _ENTRY, self._max_bytes // 2)

    def _divide(
        self, taken: set[int], records: Iterator[Sequence[int]], by_bucket: Partitions
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

    def _shared(self, by_bucket: Partitions, number: int, count: int) -> Iterator[tuple[int, int]]:
        """Yield (bucket, record) for buckets of several records, numbered anew from ``count``."""
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


def _decide(records: range, entries: Iterator[tuple[int, int]], owned: Bits) -> Iterator[bool]:
    """Yield the verdicts on consecutive ``records``, setting the bits of buckets they take."""
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
