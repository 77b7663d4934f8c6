"""`SimilarRecords`: what operators share that drop similar records, or mark their clusters."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dagster_dataops.library.dedup.algorithms.representatives import Representatives, Similarity
from dagster_dataops.library.dedup.algorithms.similar_partitions import SimilarInPartitions
from dagster_dataops.records import Record


class SimilarRecords:
    """Decides by sketches which records represent similar ones, also in partitions.

    A subclass sets the attributes, and defines ``sketch``: the buckets of a record, then the value
    for its rank, then its hashes.
    """

    _similarity: Similarity
    _max_bytes: int
    _cluster_key: str | None  # the column of the cluster; ``None`` to drop records instead

    def keep(self, sketches: Iterator[list[Any]], scratch: Path) -> Iterator[Any]:
        representatives = Representatives.of(sketches, self._similarity, scratch, self._max_bytes)
        if self._cluster_key is None:
            return representatives.verdicts()
        return representatives.clusters(scratch)

    def __dataops_partitioning__(self) -> SimilarInPartitions:
        clusters = self._cluster_key is not None
        return SimilarInPartitions(self._similarity, self._max_bytes, clusters=clusters)

    def change(self, record: Record, cluster: dict[str, Any]) -> Record:
        return {**record, str(self._cluster_key): cluster}
