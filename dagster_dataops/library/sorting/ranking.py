"""Choose the first records of each group by rank, of more records than memory holds."""

import marshal
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, groupby, islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from dagster_dataops.library.sorting.external_sort import Entry, ExternalSort
from dagster_dataops.library.sorting.ordered_keys import ordered_key, value_of
from dagster_dataops.library.sorting.spill_lists import BitArray, partition_count

Ranked: TypeAlias = tuple[bytes, bytes]
"""The group of a record, of a fixed length, and its key; the lowest keys come first.

No key is the beginning of another one. Equal keys are in input order.
"""

Value: TypeAlias = str | float | None

_NUMBERS: Final = frozenset({int, float})
_TEXTS: Final = frozenset({str})
_BLOCK_VALUES: Final = 4096
_SKETCH_GROWTH: Final = 3  # bytes of a decoded sketch for each byte of it as JSON
_POSITION_BYTES: Final = 8
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
        add(group, key + end.to_bytes(_POSITION_BYTES))
        if heads.size > max_bytes // 2 and heads.cut() > max_bytes // 4:
            return _first_by_files(heads, numbered, end, scratch, max_bytes)
    return _marked(end, chain.from_iterable(heads.groups()))


def first_of_values(
    values: Iterator[Value], most: int, scratch: Path, max_bytes: int, *, reverse: bool
) -> Iterator[bool]:
    """Yield for each value whether it is one of the first ``most``; see `ordered_key`.

    Most values are compared in blocks, as they are. Other arguments are those of `first_of_groups`.
    """
    heads, start = _Heads(most), 1
    while block := list(islice(values, _BLOCK_VALUES)):
        numbered = _candidates(block, start, heads.limit(reverse=reverse), reverse=reverse)
        heads.extend(
            [
                ordered_key(value, reverse=reverse) + at.to_bytes(_POSITION_BYTES)
                for at, value in numbered
            ]
        )
        start += len(block)
        if heads.size > max_bytes // 2 and heads.cut() > max_bytes // 4:
            rest = ((b"", ordered_key(value, reverse=reverse)) for value in values)
            return _first_by_files(heads, rest, start - 1, scratch, max_bytes)
    return _marked(start - 1, chain.from_iterable(heads.groups()))


def _candidates(
    block: list[Value], start: int, limit: Value, *, reverse: bool
) -> Iterable[tuple[int, Value]]:
    """Return position and value of the values that may come before the limit."""
    numbered = enumerate(block, start)
    alike = _TEXTS if isinstance(limit, str) else _NUMBERS
    if limit is None or not alike.issuperset(map(type, block)):
        return numbered
    if reverse:
        return [entry for entry in numbered if entry[1] > limit]  # type: ignore[operator]
    return [entry for entry in numbered if entry[1] < limit]  # type: ignore[operator]


def _first_by_files(
    heads: "_Heads", records: Iterator[Ranked], before: int, scratch: Path, max_bytes: int
) -> Iterator[bool]:
    """Return the choice of `first_of_groups`, after ``before`` records are in ``heads``."""
    length, entries = heads.group_length, ExternalSort(scratch, max_bytes // 4)
    for entry in heads.emptied():
        entries.add(entry, b"")
    end = before
    for end, (group, key) in enumerate(records, before + 1):
        entries.add(b"".join((group, key, end.to_bytes(_POSITION_BYTES))), b"")
    by_group = groupby((entry.key for entry in entries), lambda key: key[:length])
    return _marked(end, chain.from_iterable(islice(keys, heads.most) for _, keys in by_group))


def _marked(count: int, entries: Iterable[bytes]) -> Iterator[bool]:
    """Yield for each of ``count`` records whether its position, from 1 on, ends an entry."""
    chosen = BitArray(count)
    for entry in entries:
        chosen.set(int.from_bytes(entry[-_POSITION_BYTES:]) - 1)
    return iter(chosen)


class _Heads:
    """The first entries of each group.

    A group holds up to twice as many, and then drops the later half. From then on, entries after
    the last one that was kept are dropped at once.

    Attributes:
        most: How many are the first.
        size: The bytes that they take in memory.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0
        self._groups: dict[bytes, list[bytes]] = {}
        self._limits: dict[bytes, bytes] = {}

    @property
    def group_length(self) -> int:
        return len(next(iter(self._groups), b""))

    def add(self, group: bytes, entry: bytes) -> None:
        limit = self._limits.get(group)
        if limit is None or entry < limit:
            self._add(group, [entry])

    def extend(self, entries: list[bytes]) -> None:
        """Add entries of the group ``b""``."""
        self._add(b"", entries)

    def _add(self, group: bytes, added: list[bytes]) -> None:
        entries = self._groups.get(group)
        if entries is None:
            entries = self._groups[group] = []
            self.size += _GROUP_BYTES
        entries += added
        self.size += sum(map(len, added)) + _OBJECT_BYTES * len(added)
        if len(entries) > 2 * self.most:
            self._cut(group, entries)

    def _cut(self, group: bytes, entries: list[bytes]) -> None:
        entries.sort()
        self._limits[group] = entries[self.most - 1] if self.most else b""
        self.size -= sum(map(len, entries[self.most :]))
        self.size -= _OBJECT_BYTES * (len(entries) - self.most)
        del entries[self.most :]

    def limit(self, *, reverse: bool) -> Value:
        """Return the value of the last entry that is kept, if it is known, of the group ``b""``.

        Keys are those of `ordered_key`. Later values are kept only if they come before it.
        """
        entry = self._limits.get(b"")
        return value_of(entry, reverse=reverse) if entry else None

    def cut(self) -> int:
        """Keep the first entries of each group alone; return the size after that."""
        for group, entries in self._groups.items():
            if len(entries) > self.most:
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
        choose: Yields for each of these whether it is chosen, given a folder and bytes of memory;
            the records of other groups do not matter.
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
        parts = [marshal.dumps((array("I", numbers), own), 2) for numbers, own in lists]
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
