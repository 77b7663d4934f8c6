"""Selections by rank: ``sample.TopK``, ``sample.Reservoir``, ``sample.Balance``, ``sample.Mix``."""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import xxhash

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.field_keys import FieldKey, Keys, key_list
from dagster_dataops.library.sample.ordering import SORTED, not_sorted
from dagster_dataops.library.sample.splitting import RecordHash, sample
from dagster_dataops.library.sorting.canonical_form import canonical
from dagster_dataops.library.sorting.first_values import first_of_values
from dagster_dataops.library.sorting.ordered_keys import ordered_key
from dagster_dataops.library.sorting.ranking import (
    GroupsInPartitions,
    Ranked,
    Ranking,
    first_of_groups,
)
from dagster_dataops.operators.options.ranges import AtLeastZero, Fraction, PositiveInt
from dagster_dataops.records import Record


class _Groups:
    """Returns the group of a record: a hex digest of some columns; empty for one group."""

    def __init__(self, key: Keys | None) -> None:
        self._columns = [] if key is None else list(map(FieldKey, key_list("group_key", key)))
        self.several = bool(self._columns)

    def of(self, record: Record) -> str:
        if not self._columns:
            return ""
        values = [column.present(record) for column in self._columns]
        return xxhash.xxh3_128_hexdigest(canonical(values))


def _by_hash(sketches: Iterable[Any]) -> Iterator[Ranked]:
    """Yield group and key of sketches with a hash and a group."""
    return ((bytes.fromhex(group), hashed.to_bytes(8)) for hashed, group in sketches)


class NumberKept:
    """The options ``count`` and ``ratio``: how many records are kept."""

    def __init__(self, count: int | None, ratio: float | None) -> None:
        if (count is None) == (ratio is None):
            msg = f"give count or ratio, got count={count} and ratio={ratio}"
            raise DefinitionError(msg)
        self.count, self._ratio = count, ratio

    def of(self, size: int) -> int:
        """Return how many of ``size`` records are kept; a share is rounded up."""
        if self.count is not None:
            return self.count
        return math.ceil(round((self._ratio or 0.0) * size, 9))


class TopK(sample):
    """Keep the records with the largest values of ``sort_key``, in all or in each group.

    Keeps ``count`` records, or the share ``ratio`` of them, rounded up. With ``group_key``, one
    column or several, these are kept of each group of equal values. ``reverse=False`` keeps the
    smallest values. Values are numbers or texts. Missing values, ``null`` and NaN come last; of
    equal values the first in input order is kept. The result is in input order.

    The selection uses up to ``max_memory_mb`` MB and one bit per record, then files.

    Args:
        sort_key: Column of the values.
        count: Number of records that are kept, in each group.
        ratio: Share of the records that is kept, 0 to 1, instead of ``count``.
        group_key: Column of the groups, or several; ``None`` for one group.
        reverse: Whether the largest values come first.
        max_memory_mb: Memory in MB before files are used.
    """

    renamed_options: ClassVar = {"k": "count", "key": "sort_key", "per": "group_key"}

    def __init__(
        self,
        sort_key: str,
        count: AtLeastZero | None = None,
        *,
        ratio: Fraction | None = None,
        group_key: Keys | None = None,
        reverse: bool = True,
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._number = NumberKept(count, ratio)
        self._column, self._groups, self._reverse = FieldKey(sort_key), _Groups(group_key), reverse
        self._plain_key = sort_key if self._column.plain else None
        self._max_bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> Any:
        key = self._plain_key
        value = self._column.value(record) if key is None else record.get(key)
        if type(value) not in SORTED:
            raise not_sorted(self._column, value)
        return [value, self._groups.of(record)] if self._groups.several else value

    def __dataops_sketched_column__(self) -> str | None:
        """Return the column whose values are the sketches."""
        called = self._groups.several or type(self).sketch is not TopK.sketch
        return None if called else self._plain_key

    def keep(self, sketches: Iterator[Any], scratch: Path) -> Iterator[bool]:
        reverse, count, limit = self._reverse, self._number.count, self._max_bytes
        if count is not None and not self._groups.several:
            return first_of_values(sketches, count, scratch, limit, reverse=reverse)
        pairs = sketches if self._groups.several else ((value, "") for value in sketches)
        return self._chosen(self._ranked(pairs), scratch, limit)

    def __dataops_partitioning__(self) -> GroupsInPartitions | None:
        if not self._groups.several:
            return None
        return GroupsInPartitions(self._max_bytes, self._ranked, self._chosen)

    def _ranked(self, pairs: Iterable[Any]) -> Iterator[Ranked]:
        for value, group in pairs:
            yield bytes.fromhex(group), ordered_key(value, reverse=self._reverse)

    def _chosen(self, ranked: Iterable[Ranked], scratch: Path, limit: int) -> Iterator[bool]:
        if self._number.count is not None:
            return first_of_groups(ranked, self._number.count, scratch, limit)
        return Ranking(ranked, scratch, limit).first(lambda _, size: self._number.of(size))


class Reservoir(sample):
    """Keep ``count`` records chosen at random, in all or in each group.

    The choice is by a hash of the column ``hash_key`` or of several, by default of the whole
    record, with ``seed``: the records with the smallest hashes stay, of equal ones the first. So
    the result does not depend on the order of different records, and a larger ``count`` keeps the
    same and more. With ``group_key``, one column or several, ``count`` records of each group are
    kept. The result is in input order.

    The selection uses up to ``max_memory_mb`` MB and one bit per record, then files.

    Args:
        count: Number of records that are kept.
        hash_key: Column that is hashed, or several; ``None`` for the whole record.
        group_key: Column of the groups, or several; ``None`` for one group.
        seed: Another number makes another choice.
        max_memory_mb: Memory in MB before files are used.
    """

    renamed_options: ClassVar = {"k": "count", "key": "hash_key", "per": "group_key"}

    def __init__(
        self,
        count: AtLeastZero,
        *,
        hash_key: Keys | None = None,
        group_key: Keys | None = None,
        seed: int = 0,
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._count, self._hash, self._groups = (
            count,
            RecordHash(hash_key, seed),
            _Groups(group_key),
        )
        self._max_bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> list[Any]:
        return [self._hash.of(record), self._groups.of(record)]

    def keep(self, sketches: Iterator[Any], scratch: Path) -> Iterator[bool]:
        return self._chosen(_by_hash(sketches), scratch, self._max_bytes)

    def __dataops_partitioning__(self) -> GroupsInPartitions | None:
        if not self._groups.several:
            return None
        return GroupsInPartitions(self._max_bytes, _by_hash, self._chosen)

    def _chosen(self, ranked: Iterable[Ranked], scratch: Path, limit: int) -> Iterator[bool]:
        return first_of_groups(ranked, self._count, scratch, limit)


class Balance(sample):
    """Keep at most ``max_per_group`` records of each group, so that none dominates.

    The groups are the values of ``group_key``, one column or several. Without ``max_per_group`` it
    is the size of the smallest group. By default the first records of a group stay; with ``seed`` a
    random choice by the hash of the whole record. The result is in input order.

    The selection uses up to ``max_memory_mb`` MB and one bit per record, then files.

    Args:
        group_key: Column of the groups, or several.
        max_per_group: Most records of a group; ``None`` for the size of the smallest group.
        seed: Chooses at random; ``None`` keeps the first records.
        max_memory_mb: Memory in MB before files are used.
    """

    renamed_options: ClassVar = {"key": "group_key", "cap": "max_per_group"}

    def __init__(
        self,
        group_key: Keys,
        max_per_group: AtLeastZero | None = None,
        *,
        seed: int | None = None,
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._groups, self._most = _Groups(group_key), max_per_group
        self._hash = None if seed is None else RecordHash(None, seed)
        self._max_bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> list[Any]:
        return [0 if self._hash is None else self._hash.of(record), self._groups.of(record)]

    def keep(self, sketches: Iterator[Any], scratch: Path) -> Iterator[bool]:
        ranked = _by_hash(sketches)
        if self._most is not None:
            return self._chosen(ranked, scratch, self._max_bytes)
        ranking = Ranking(ranked, scratch, self._max_bytes)
        most = min((size for _, size in ranking.sizes()), default=0)
        return ranking.first(lambda _, __: most)

    def __dataops_partitioning__(self) -> GroupsInPartitions | None:
        if self._most is None:  # the size of the smallest of all groups
            return None
        return GroupsInPartitions(self._max_bytes, _by_hash, self._chosen)

    def _chosen(self, ranked: Iterable[Ranked], scratch: Path, limit: int) -> Iterator[bool]:
        return first_of_groups(ranked, self._most or 0, scratch, limit)


class Mix(sample):
    """Keep as many records as possible so that groups have given shares of the result.

    ``weights`` has the relative share of each group by its value of ``group_key``, such as
    ``{"web": 0.7, "code": 0.3}``. Records of other groups are dropped. ``count`` limits the number
    of records. The choice is random, by the hash of the whole record with ``seed``. The result is
    in input order. To combine several inputs instead, use `combine.sample`. If a group has no
    record, the run fails with a `ValueError`: its share could only be kept by an empty result.

    The selection uses up to ``max_memory_mb`` MB and one bit per record, then files.

    Args:
        weights: Relative share of each group.
        group_key: Column of the groups.
        count: Most records of the result; ``None`` for no limit.
        seed: Another number makes another choice.
        max_memory_mb: Memory in MB before files are used.
    """

    renamed_options: ClassVar = {"key": "group_key", "total": "count"}

    def __init__(
        self,
        weights: Mapping[str, float],
        group_key: str = "source",
        *,
        count: AtLeastZero | None = None,
        seed: int = 0,
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not weights or not all(weight > 0 for weight in weights.values()):
            msg = f"weights must be positive numbers by group, got {dict(weights)}"
            raise DefinitionError(msg)
        whole = sum(weights.values())
        self._shares = {group: weight / whole for group, weight in weights.items()}
        self._column, self._total, self._hash = FieldKey(group_key), count, RecordHash(None, seed)
        self._max_bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> list[Any]:
        return [self._hash.of(record), self._column.text(record)]

    def keep(self, sketches: Iterator[Any], scratch: Path) -> Iterator[bool]:
        names = list(self._shares)
        numbers = {name: number.to_bytes(8) for number, name in enumerate(names)}
        other = len(names).to_bytes(8)
        ranked = ((numbers.get(group, other), hashed.to_bytes(8)) for hashed, group in sketches)
        ranking = Ranking(ranked, scratch, self._max_bytes)
        sizes = dict.fromkeys(names, 0)
        sizes |= {
            names[int.from_bytes(group)]: size for group, size in ranking.sizes() if group != other
        }
        if ranking.count:
            self._check_no_group_is_empty(sizes)
        whole = min(sizes[group] / share for group, share in self._shares.items())
        if self._total is not None:
            whole = min(whole, self._total)
        most = [int(round(whole * share, 6)) for share in self._shares.values()]
        return ranking.first(lambda group, _: [*most, 0][int.from_bytes(group)])

    def _check_no_group_is_empty(self, sizes: Mapping[str, int]) -> None:
        empty = [group for group, size in sizes.items() if not size]
        if empty:
            msg = (
                f"no record has {self._column.name!r} = {', '.join(map(repr, empty))}, so these "
                "shares cannot be kept; remove these groups from weights, or correct group_key"
            )
            raise ValueError(msg)
