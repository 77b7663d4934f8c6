"""Choose the first records of each group by rank, of more records than memory holds."""

import marshal
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, groupby, islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from dagster_dataops.library.sorting.external_sort import Entry, ExternalSort
from dagster_dataops.library.sorting.spill_lists import BitArray, partition_count

Ranked: TypeAlias = tuple[bytes, bytes]
"""The group of a record, of a fixed length, and its key; the lowest keys come first.

No key is the beginning of another one. Equal keys are in input order.
"""

POSITION_BYTES: Final = 8
_SKETCH_GROWTH: Final = 3  # bytes of a decoded sketch for each byte of it as JSON
_OBJECT_BYTES: Final = 64  # of an entry in memory, besides its content
_GROUP_BYTES: Final = 400  # of a group in memory, besides its entries


def first_of_groups(
    records: Iterable[Ranked], most: int, scratch: Path, max_bytes: int
) -> Iterator[bool]:
    """Yield for each record whether it is one of the first ``most`` of its group.

    Args:
        records: Group and key of each record.
        most: How many are kept of each group.
        scratch: An empty folder for files.
        max_bytes: The memory limit, without one bit per record.
    """
    heads = _Heads(most)
    add, end = heads.add, 0
    numbered = iter(records)
    for end, (group, key) in enumerate(numbered, 1):
        add(group, key + end.to_bytes(POSITION_BYTES))
        if heads.size > max_bytes // 2 and heads.cut() > max_bytes // 4:
            length, held = heads.group_length, heads.emptied()
            return first_by_files(held, numbered, end, scratch, max_bytes, most=most, length=length)
    return marked(end, map(_position, chain.from_iterable(heads.groups())))


def first_by_files(
    held: Iterable[bytes],
    records: Iterator[Ranked],
    before: int,
    scratch: Path,
    max_bytes: int,
    *,
    most: int,
    length: int = 0,
) -> Iterator[bool]:
    """Return the choice of `first_of_groups`, after ``before`` records were read.

    Args:
        held: Of those of them that may be chosen: group, key and position, from 1 on.
        records: The other ones.
        before: The number of records that were read.
        scratch: As for `first_of_groups`.
        max_bytes: As for `first_of_groups`.
        most: As for `first_of_groups`.
        length: Of groups.
    """
    entries = ExternalSort(scratch, max_bytes // 4)
    for entry in held:
        entries.add(entry, b"")
    end = before
    for end, (group, key) in enumerate(records, before + 1):
        entries.add(b"".join((group, key, end.to_bytes(POSITION_BYTES))), b"")
    by_group = groupby((entry.key for entry in entries), lambda key: key[:length])
    chosen = chain.from_iterable(islice(keys, most) for _, keys in by_group)
    return marked(end, map(_position, chosen))


def _position(entry: bytes) -> int:
    return int.from_bytes(entry[-POSITION_BYTES:])


def marked(count: int, positions: Iterable[int]) -> Iterator[bool]:
    """Yield for each of ``count`` records whether its position, from 1 on, is among those given."""
    chosen = BitArray(count)
    for position in positions:
        chosen.set(position - 1)
    return iter(chosen)


class _Heads:
    """The first entries of each group.

    A group holds up to twice as many, and then drops the later half. From then on, entries after
    the last one that was kept are dropped at once.

    Attributes:
        size: The bytes that they take in memory.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = 0
        self._groups: dict[bytes, list[bytes]] = {}
        self._limits: dict[bytes, bytes] = {}

    @property
    def group_length(self) -> int:
        return len(next(iter(self._groups), b""))

    def add(self, group: bytes, entry: bytes) -> None:
        limit = self._limits.get(group)
        if limit is None or entry < limit:
            self._add(group, entry)

    def _add(self, group: bytes, entry: bytes) -> None:
        entries = self._groups.get(group)
        if entries is None:
            entries = self._groups[group] = []
            self.size += _GROUP_BYTES
        entries.append(entry)
        self.size += len(entry) + _OBJECT_BYTES
        if len(entries) > 2 * self._most:
            self._cut(group, entries)

    def _cut(self, group: bytes, entries: list[bytes]) -> None:
        entries.sort()
        self._limits[group] = entries[self._most - 1] if self._most else b""
        self.size -= sum(map(len, entries[self._most :]))
        self.size -= _OBJECT_BYTES * (len(entries) - self._most)
        del entries[self._most :]

    def cut(self) -> int:
        """Keep the first entries of each group alone; return the size after that."""
        for group, entries in self._groups.items():
            if len(entries) > self._most:
                self._cut(group, entries)
        return self.size

    def groups(self) -> Iterator[list[bytes]]:
        """Yield the first entries of each group."""
        self.cut()
        return iter(self._groups.values())

    def emptied(self) -> Iterator[bytes]:
        """Yield each entry after its group, and remove it."""
        while self._groups:
            group, entries = self._groups.popitem()
            for entry in entries:
                yield group + entry
        self._limits.clear()


class GroupsInPartitions:
    """Chooses records of groups in partitions of the groups; a `Partitioning`.

    Args:
        max_bytes: The memory of all processes together.
        ranked: Returns group and key of each sketch; groups are digests, evenly distributed.
        choose: Yields for each of these whether it is chosen, independently of other groups; takes
            an empty folder and bytes of memory, too.
    """

    def __init__(
        self,
        max_bytes: int,
        ranked: Callable[[Iterable[Any]], Iterable[Ranked]],
        choose: Callable[[Iterable[Ranked], Path, int], Iterator[bool]],
    ) -> None:
        self.max_bytes, self._ranked, self._choose = max_bytes, ranked, choose

    def partitions(self, sketch_bytes: int, memory: int) -> int:
        """Return the number of partitions."""
        return partition_count(sketch_bytes, _SKETCH_GROWTH, memory // 2)

    def split(self, sketches: Iterator[Any], partitions: int) -> tuple[list[bytes], bytes]:
        """Return the part of each partition, and the number of sketches."""
        lists: list[tuple[list[int], list[Ranked]]] = [([], []) for _ in range(partitions)]
        count = 0
        for count, ranked in enumerate(self._ranked(sketches), 1):
            numbers, entries = lists[ranked[0][0] * partitions >> 8]
            numbers.append(count - 1)
            entries.append(ranked)
        parts = [marshal.dumps((array("I", numbers), ranked), 2) for numbers, ranked in lists]
        return parts, count.to_bytes(8)

    def decide(self, parts: Sequence[bytes], scratch: Path, memory: int) -> Iterator[bytes]:
        """Yield the numbers of the chosen records of each range."""
        entries = chain.from_iterable(_entries(part)[1] for part in parts)
        chosen = self._choose(entries, scratch, memory)
        for part in parts:
            numbers = array("I", _entries(part)[0])
            yield array("I", compress(numbers, islice(chosen, len(numbers)))).tobytes()

    def verdicts(self, decided: Sequence[bytes], rest: bytes) -> Iterator[bool]:
        """Yield whether each record is chosen."""
        chosen = bytearray(int.from_bytes(rest))
        for number in array("I", b"".join(decided)):
            chosen[number] = 1
        return map(bool, chosen)


def _entries(part: bytes) -> tuple[bytes, list[Ranked]]:
    return marshal.loads(part)  # type: ignore[no-any-return]  # noqa: S302 - our own file


class Ranking:
    """Records by group and key, for choices that need the number of records of each group.

    Args:
        records: Group and key of each record.
        scratch: An empty folder for files.
        max_bytes: The memory limit, without one bit per record.

    Attributes:
        count: Number of records.
    """

    def __init__(self, records: Iterable[Ranked], scratch: Path, max_bytes: int) -> None:
        self._sorted = ExternalSort(scratch, max_bytes)
        self._length = self.count = 0
        for self.count, (group, key) in enumerate(records, 1):
            self._length = len(group)
            self._sorted.add(group + key, b"")

    def sizes(self) -> Iterator[tuple[bytes, int]]:
        """Yield each group and the number of its records."""
        for group, entries in groupby(self._sorted, self._group):
            yield group, sum(1 for _ in entries)

    def first(self, most: Callable[[bytes, int], int]) -> Iterator[bool]:
        """Yield for each record in input order whether it is one of the first of its group.

        ``most`` returns how many are kept of a group, for the group and its size.
        """
        chosen = BitArray(self.count)
        groups = groupby(self._sorted, self._group)
        for (group, size), (_, entries) in zip(self.sizes(), groups, strict=True):
            for entry in islice(entries, most(group, size)):
                chosen.set(entry.number - 1)
        return iter(chosen)

    def _group(self, entry: Entry) -> bytes:
        return entry.key[: self._length]
