"""``sample.Sort`` and ``sample.GroupBy`` in partitions; each class is a `Regrouping`."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, islice
from pathlib import Path
from typing import Final

from dagster_dataops.library.sorting.external_sort import ExternalSort
from dagster_dataops.library.sorting.keyed_parts import (
    Keyed,
    entries_of,
    packed_parts,
    partitions_of_input,
)
from dagster_dataops.operators.partitioning import Entry, Parts, Plan
from dagster_dataops.records import Record, compact_copy, encode

_BLOCK_BYTES: Final = 64 << 10
_NUMBER_BYTES: Final = 8


class SortInPartitions:
    """Sorts by key, in ranges of keys that are cut at quantiles of some keys.

    Args:
        max_bytes: The memory of all processes together.
        key_of: Returns the key of a record.
    """

    in_order = True

    def __init__(self, max_bytes: int, key_of: Callable[[Record], bytes]) -> None:
        self.max_bytes, self._key_of = max_bytes, key_of

    def plan(self, size: int, memory: int, sampled: Callable[[], Iterator[Record]]) -> Plan:
        """Return the cuts between the ranges."""
        keys = sorted(self._keys(sampled()))
        count = partitions_of_input(size, memory)
        cuts = sorted(
            {keys[len(keys) * number // count] for number in range(1, count)} if keys else ()
        )
        return Plan(len(cuts) + 1, tuple(cuts))

    def _keys(self, records: Iterator[Record]) -> Iterator[bytes]:
        for record in records:
            with suppress(TypeError):  # `split` finds the record, too
                yield self._key_of(record)

    def split(self, numbered: Iterator[tuple[int, Record]], at: int, plan: Plan) -> Parts:  # noqa: ARG002
        """Return the part of each partition."""
        return packed_parts(self._entries(numbered, plan), plan.partitions)

    def _entries(
        self, numbered: Iterator[tuple[int, Record]], plan: Plan
    ) -> Iterator[tuple[int, Keyed]]:
        for _, record in numbered:
            key = self._key_of(record)
            yield bisect_right(plan.cuts, key), (key, compact_copy(encode(record)))

    def work(self, parts: Sequence[Parts], scratch: Path, memory: int) -> Iterator[Entry]:
        """Yield the sorted lines, some at a time."""
        by_key = ExternalSort(scratch, memory)
        for key, line in entries_of(parts[0]):
            by_key.add(key, line)
        lines, room = [], _BLOCK_BYTES
        for line in by_key.data():
            lines.append(line)
            room -= len(line)
            if room <= 0:
                yield b"", b"".join(lines)
                lines, room = [], _BLOCK_BYTES
        yield b"", b"".join(lines)


class GroupInPartitions:
    """Groups by the digests of keys.

    Args:
        max_bytes: The memory of all processes together.
        digest_of: Returns the digest of the group of a record: 16 bytes, evenly distributed.
        grouped: Returns the record of a group for the JSON of its records.
        most: Most records of a group; ``None`` for all.
    """

    in_order = False

    def __init__(
        self,
        max_bytes: int,
        digest_of: Callable[[Record], bytes],
        grouped: Callable[[bytes], Record],
        most: int | None,
    ) -> None:
        self.max_bytes = max_bytes
        self._digest_of, self._grouped, self._most = digest_of, grouped, most

    def plan(self, size: int, memory: int, sampled: Callable[[], Iterator[Record]]) -> Plan:  # noqa: ARG002
        """Return the number of partitions."""
        return Plan(partitions_of_input(size, memory))

    def split(self, numbered: Iterator[tuple[int, Record]], at: int, plan: Plan) -> Parts:  # noqa: ARG002
        """Return the part of each partition."""
        return packed_parts(self._entries(numbered, plan.partitions), plan.partitions)

    def _entries(
        self, numbered: Iterator[tuple[int, Record]], partitions: int
    ) -> Iterator[tuple[int, Keyed]]:
        for number, record in numbered:
            digest = self._digest_of(record)
            data = number.to_bytes(_NUMBER_BYTES) + encode(record)
            yield digest[0] * partitions >> 8, (digest, data)

    def work(self, parts: Sequence[Parts], scratch: Path, memory: int) -> Iterator[Entry]:
        """Yield the groups by the numbers of their first records."""
        by_group = ExternalSort(scratch, memory // 2, name="group")
        for digest, data in entries_of(parts[0]):
            by_group.add(digest, data)
        by_first = ExternalSort(scratch, memory // 2, name="first")
        for _, entries in groupby(by_group, lambda entry: entry.key):
            kept = [entry.data for entry in islice(entries, self._most)]
            lines = b",".join(data[_NUMBER_BYTES:] for data in kept)
            by_first.add(kept[0][:_NUMBER_BYTES], b"[%b]" % lines)
        for entry in by_first:
            yield entry.key, encode(self._grouped(entry.data))
