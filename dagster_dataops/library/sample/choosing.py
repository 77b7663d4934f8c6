"""Selections by rank: ``sample.TopK``, ``sample.Reservoir``, ``sample.Balance``, ``sample.Mix``."""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby, islice
from pathlib import Path
from typing import Any, ClassVar

import xxhash

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.field_keys import FieldKey, Keys, key_list
from dagster_dataops.library.sample.ordering import sort_key
from dagster_dataops.library.sample.splitting import RecordHash, sample
from dagster_dataops.library.sorting.canonical_form import canonical
from dagster_dataops.library.sorting.external_sort import ExternalSort
from dagster_dataops.library.sorting.spill_lists import BitArray
from dagster_dataops.operators.options.ranges import AtLeastZero, Fraction, PositiveInt
from dagster_dataops.records import Record


class _Ranked:
    """Sketches of records: group (text) and sort key (list) of each, sorted by both.

    With ``reverse``, higher sort keys come first. The scratch folder is empty.
    """

    def __init__(
        self, sketches: Iterator[Any], scratch: Path, max_bytes: int, *, reverse: bool = False
    ) -> None:
        self._sorted = ExternalSort(scratch, max_bytes, reverse=reverse)
        self.count = 0
        for group, key in sketches:
            self._sorted.add((group, *key), self.count.to_bytes(8))
            self.count += 1

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Yield each group and the number of its records."""
        for group, entries in groupby(self._sorted, _group):
            yield group, sum(1 for _ in entries)

    def kept(self, most: Callable[[str, int], int]) -> Iterator[bool]:
        """Yield for each record in input order whether it is one of the first of its group.

        ``most`` returns how many are kept of a group, for the group and its size.
        """
        chosen = BitArray(self.count)
        for (group, size), (_, entries) in zip(
            self.sizes(), groupby(self._sorted, _group), strict=True
        ):
            for _, _, position in islice(entries, most(group, size)):
                chosen.set(int.from_bytes(position))
        return iter(chosen)


def _group(entry: Any) -> str:
    return str(entry[0][0])


class _Groups:
    """Returns the group of a record as a text: a digest of some columns; empty for one group."""

    def __init__(self, key: Keys | None) -> None:
        self._columns = [] if key is None else list(map(FieldKey, key_list("group_key", key)))

    def of(self, record: Record) -> str:
        if not self._columns:
            return ""
        found = [column.present(record) for column in self._columns]
        return xxhash.xxh3_128_hexdigest(canonical(found))


class NumberKept:
    """The options ``count`` and ``ratio``: how many records are kept.

    Raises:
        DefinitionError: Not one of them is given.
    """

    def __init__(self, count: int | None, ratio: float | None) -> None:
        if (count is None) == (ratio is None):
            msg = f"give count or ratio, got count={count} and ratio={ratio}"
            raise DefinitionError(msg)
        self._count, self._ratio = count, ratio

    def of(self, size: int) -> int:
        """Return how many of ``size`` records are kept; a share is rounded up."""
        if self._count is not None:
            return self._count
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
        self._max_bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> list[Any]:
        return [self._groups.of(record), sort_key(self._column, record, reverse=self._reverse)]

    def keep(self, sketches: Iterator[Any], scratch: Path) -> Iterator[bool]:
        ranked = _Ranked(sketches, scratch, self._max_bytes, reverse=self._reverse)
        return ranked.kept(lambda _, size: self._number.of(size))


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
        return [self._groups.of(record), [self._hash.of(record)]]

    def keep(self, sketches: Iterator[Any], scratch: Path) -> Iterator[bool]:
        return _Ranked(sketches, scratch, self._max_bytes).kept(lambda _, __: self._count)


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
        return [self._groups.of(record), [] if self._hash is None else [self._hash.of(record)]]

    def keep(self, sketches: Iterator[Any], scratch: Path) -> Iterator[bool]:
        ranked = _Ranked(sketches, scratch, self._max_bytes)
        most = self._most
        if most is None:
            most = min((size for _, size in ranked.sizes()), default=0)
        return ranked.kept(lambda _, __: most)


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
        group = self._column.text(record)
        return [group, [self._hash.of(record)]]

    def keep(self, sketches: Iterator[Any], scratch: Path) -> Iterator[bool]:
        ranked = _Ranked(sketches, scratch, self._max_bytes)
        sizes = dict.fromkeys(self._shares, 0)
        sizes |= {group: size for group, size in ranked.sizes() if group in sizes}
        if ranked.count:
            self._check_no_group_is_empty(sizes)
        whole = min(sizes[group] / share for group, share in self._shares.items())
        if self._total is not None:
            whole = min(whole, self._total)
        most = {group: int(round(whole * share, 6)) for group, share in self._shares.items()}
        return ranked.kept(lambda group, _: most.get(group, 0))

    def _check_no_group_is_empty(self, sizes: Mapping[str, int]) -> None:
        empty = [group for group, size in sizes.items() if not size]
        if empty:
            msg = (
                f"no record has {self._column.name!r} = {', '.join(map(repr, empty))}, so these "
                "shares cannot be kept; remove these groups from weights, or correct group_key"
            )
            raise ValueError(msg)
