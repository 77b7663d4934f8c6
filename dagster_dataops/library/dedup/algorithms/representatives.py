"""Decide which records similar ones are dropped for, with more records than memory holds.

The records are decided in the order of their ranks. Two records are candidates if they share a
bucket. With ``limit``, candidates are similar if the similarity of their stored hashes is at least
that; without, all are. The comparisons of a record are limited, so that the time stays proportional
to the number of records also if many records share a bucket and are not similar.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from dagster_dataops.library.dedup.algorithms.disk_array import disk_array
from dagster_dataops.library.dedup.algorithms.equal_buckets import BucketMembers
from dagster_dataops.library.dedup.algorithms.shared_buckets import SharedBuckets
from dagster_dataops.library.dedup.algorithms.sketch_files import SketchFiles

_BLOCK_RECORDS: Final = 64 << 10
MOST_COMPARED: Final = 256  # records of a bucket, and candidates of a record

Linkage: TypeAlias = Literal["kept", "component"]
Measure: TypeAlias = Callable[[Any, Any, float], float]
"""Return the similarity of two arrays of hashes, at most 1; below a limit any lower bound will do.

It is 1 if and only if the arrays are equal.
"""


def jaccard(left: Any, other: Any, limit: float) -> float:
    """Return the Jaccard index of two sorted arrays without repeats."""
    import numpy

    least, most = sorted((len(left), len(other)))
    if least < limit * most:
        return 0.0
    shared = len(numpy.intersect1d(left, other, assume_unique=True))
    return shared / (len(left) + len(other) - shared)


@dataclass(frozen=True, kw_only=True)
class Similarity:
    """How records are compared.

    Attributes:
        bands: The number of buckets of each record.
        linkage: ``kept`` drops a record that is similar to a kept one; ``component`` keeps one
            record of each connected component.
        limit: The least similarity of similar records; ``None`` if a shared bucket is enough.
        measure: Computes the similarity.
        ranked: Whether records with higher values are decided first; else, the input order counts.
    """

    bands: int
    linkage: Linkage
    limit: float | None = None
    measure: Measure = jaccard
    ranked: bool = False


class Representatives:
    """The record that each record is represented by: itself if it is kept.

    Args:
        sketches: Ranks and hashes of the records.
        members: Those of the buckets that several records share.
        similarity: How they are compared.
        scratch: An empty folder.
        max_bytes: The approximate memory limit. Further memory, 8 bytes a record, is in mapped
            files; with ``ranked`` 32 bytes a record are not.

    Attributes:
        count: The number of records.
    """

    def __init__(
        self,
        sketches: SketchFiles,
        members: Iterable[BucketMembers],
        similarity: Similarity,
        scratch: Path,
        max_bytes: int,
    ) -> None:
        self._component = similarity.linkage == "component"
        self._limit, self._measure = similarity.limit, similarity.measure
        self._scratch, self._sketches = scratch, sketches
        self.count = sketches.count
        self._decide(members, similarity, max_bytes)

    @classmethod
    def of(
        cls,
        sketches: Iterable[list[Any]],
        similarity: Similarity,
        scratch: Path,
        max_bytes: int,
    ) -> "Representatives":
        """Return those of sketches in input order: buckets, then values for the ranks, then hashes.

        Other arguments are those of the class.
        """
        with closing(SketchFiles(scratch, similarity.bands)) as files:
            files.write(sketches)
            return cls(files, files.shared(max_bytes), similarity, scratch, max_bytes)

    def _decide(
        self, members: Iterable[BucketMembers], similarity: Similarity, max_bytes: int
    ) -> None:
        self._order: Any = None  # the position of each rank
        self._ranks: Any = None  # the rank of each position
        if similarity.ranked:
            self._rank()
        scratch = self._scratch
        shared = SharedBuckets(members, self.count, self._ranks, scratch / "shared", max_bytes)
        self._parents = disk_array(scratch / "parents", self.count)  # rank + 1; 0 for itself
        self._heads = disk_array(scratch / "heads", shared.count)
        listed = 2 * shared.pairs if self._limit is not None else 0
        self._listed = disk_array(scratch / "listed", listed)
        self._lengths = disk_array(scratch / "lengths", shared.count if listed else 0)
        self._entries = 0
        decide = self._decide_by_buckets if self._limit is None else self._decide_by_hashes
        for rank, buckets in shared.by_rank():
            decide(rank, buckets)

    def _rank(self) -> None:
        import numpy

        self._order = numpy.argsort(-self._sketches.ranks(), kind="stable")
        self._ranks = numpy.empty(self.count, "<u8")
        self._ranks[self._order] = numpy.arange(self.count)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield (position, position of the representative) of each record, in input order."""
        ranks, order = self._ranks, self._order
        for position in range(self.count):
            if ranks is None:
                yield position, self._root(position)
            else:
                yield position, int(order[self._root(int(ranks[position]))])

    def kept(self, start: int, end: int) -> bytes:
        """Return for each position of a range a byte: 1 if the record is kept."""
        import numpy

        parents: Any = numpy.frombuffer(self._parents, "<u8")
        parents = parents[start:end] if self._ranks is None else parents[self._ranks[start:end]]
        return (parents == 0).tobytes()  # type: ignore[no-any-return]

    def verdicts(self) -> Iterator[bool]:
        """Yield whether each record is kept, in input order."""
        for start in range(0, self.count, _BLOCK_RECORDS):
            yield from map(bool, self.kept(start, min(start + _BLOCK_RECORDS, self.count)))

    def clusters(self, scratch: Path) -> Iterator[dict[str, Any]]:
        """Yield the cluster of each record, in input order; the folder gets a file."""
        sizes = self.sizes(scratch / "sizes")
        for position, kept in self:
            yield {"id": kept, "size": sizes[kept], "kept": position == kept}

    def sizes(self, path: Path) -> memoryview:
        """Return how many records each record represents, by position, in a new file."""
        sizes = disk_array(path, self.count)
        for _, representative in self:
            sizes[representative] += 1
        return sizes

    # ------------------------------------------------------------ decisions

    def _decide_by_buckets(self, rank: int, buckets: list[int]) -> None:
        heads = self._heads
        owners = {heads[bucket] for bucket in buckets} - {0}
        if self._component:
            for owner in owners:
                self._join(rank, owner - 1)
        elif owners:
            self._parents[rank] = min(owners)
            return
        for bucket in buckets:
            heads[bucket] = heads[bucket] or rank + 1

    def _decide_by_hashes(self, rank: int, buckets: list[int]) -> None:
        """Compare a record with the candidates that share most buckets first.

        A record with the same hashes as one before is left out of the lists of buckets: a record
        that is similar to it is similar to that one, and shares the same buckets with it.
        """
        mine = None
        for other in self._candidates(buckets):
            if self._component and self._root(other) == self._root(rank):
                continue
            mine = self._hashes(rank) if mine is None else mine
            similarity = self._measure(mine, self._hashes(other), self._limit or 0.0)
            if similarity >= (self._limit or 0.0):
                self._join(rank, other)
                if not self._component or similarity >= 1:
                    return
        self._list(rank, buckets)

    def _candidates(self, buckets: list[int]) -> list[int]:
        listed = self._listed
        shared: Counter[int] = Counter()
        for bucket in buckets:
            entry = self._heads[bucket]
            while entry:
                shared[listed[2 * entry - 2]] += 1
                entry = listed[2 * entry - 1]
        return sorted(shared, key=lambda other: (-shared[other], other))[:MOST_COMPARED]

    def _list(self, rank: int, buckets: list[int]) -> None:
        for bucket in buckets:
            if self._lengths[bucket] >= MOST_COMPARED:
                continue
            self._lengths[bucket] += 1
            self._listed[2 * self._entries] = rank
            self._listed[2 * self._entries + 1] = self._heads[bucket]
            self._entries += 1
            self._heads[bucket] = self._entries

    def _hashes(self, rank: int) -> Any:
        return self._sketches.hashes(rank if self._order is None else int(self._order[rank]))

    # ------------------------------------------------------------ connected records

    def _root(self, rank: int) -> int:
        parents = self._parents
        while parents[rank]:
            above = parents[rank] - 1
            if parents[above]:
                parents[rank] = parents[above]
            rank = above
        return rank

    def _join(self, left: int, other: int) -> None:
        first, second = sorted((self._root(left), self._root(other)))
        if first != second:
            self._parents[second] = first + 1
