"""Similar records in partitions of the buckets; `SimilarInPartitions` is a `Partitioning`."""

import marshal
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Any, Final

from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.library.dedup.algorithms.equal_buckets import (
    SORT_BYTES,
    BucketMembers,
    equal_buckets,
)
from dagster_dataops.library.dedup.algorithms.representatives import Representatives, Similarity
from dagster_dataops.library.dedup.algorithms.sketch_files import SketchFiles, decoded_hashes
from dagster_dataops.library.sorting.spill_lists import passes
from dagster_dataops.operators.partitioning import Parts

_MOST_PARTITIONS: Final = 256
_BUCKET_BYTES: Final = 8
_PLACE_BYTES: Final = 4
_PAIR_BYTES: Final = 8  # place of a record in its range, and number of a bucket
_BLOCK_RECORDS: Final = 4096


class SimilarInPartitions:
    """Finds the records that represent similar ones, as `Representatives`.

    Each band is split into slices of its buckets. A slice is a partition: it finds the buckets that
    several records share. The records are then decided by one task, which sees only these.

    Args:
        similarity: How records are compared.
        max_bytes: The memory of all processes together.
        clusters: Whether verdicts are the clusters of the records; else whether each is kept.
    """

    def __init__(self, similarity: Similarity, max_bytes: int, *, clusters: bool = False) -> None:
        self.max_bytes = max_bytes
        self._similarity, self._clusters = similarity, clusters

    def partitions(self, sketch_bytes: int, memory: int) -> int:
        """Return the number of partitions: a multiple of the number of bands."""
        bands = self._similarity.bands
        records = sketch_bytes // (2 * _BUCKET_BYTES * bands)  # each bucket is 16 digits
        slices = passes(records, SORT_BYTES, memory // 2)
        return bands * max(1, min(slices, _MOST_PARTITIONS // bands))

    def split(self, sketches: Iterator[list[Any]], partitions: int) -> tuple[list[bytes], bytes]:
        """Return place and bucket of the records of each partition, and ranks and hashes of all."""
        import numpy

        bands = self._similarity.bands
        rows, ranks, hashes, lengths = bytearray(), bytearray(), bytearray(), array("Q")
        while block := list(islice(sketches, _BLOCK_RECORDS)):
            rows += bytes.fromhex("".join(sketch[0] for sketch in block))
            if len(block[0]) > 1:
                ranks += numpy.array([sketch[1] for sketch in block], "<f8").tobytes()
            for sketch in block if len(block[0]) > 2 else ():
                packed = decoded_hashes(sketch)
                lengths.append(len(packed))
                hashes += packed
        matrix = numpy.frombuffer(rows, "<u8").reshape(-1, bands)
        slices = partitions // bands
        parts = []
        for band in range(bands):
            buckets = numpy.ascontiguousarray(matrix[:, band])
            of_slice = buckets % numpy.uint64(slices)
            for number in range(slices):
                places = numpy.nonzero(of_slice == number)[0]
                parts.append(places.astype("<u4").tobytes() + buckets[places].tobytes())
        rest = (len(matrix), bytes(ranks), lengths.tobytes(), bytes(hashes))
        return parts, marshal.dumps(rest)

    def decide(self, parts: Parts, scratch: Path, memory: int) -> Iterator[bytes]:
        """Yield for each range the records that share buckets; at last the number of buckets."""
        entries = sum(len(part) for part in parts) // (_PLACE_BYTES + _BUCKET_BYTES)
        turns = passes(entries, SORT_BYTES, memory)
        files, cuts, count = [scratch / f"{turn:06d}" for turn in range(turns)], [], 0
        for turn, path in enumerate(files):
            pairs, ends, buckets = _shared_of(parts, turn, turns, count)
            with storage(path, "write"):
                path.write_bytes(pairs)
            cuts.append([0, *ends])
            count += buckets
        for number in range(len(parts)):
            shared = [
                _range_of(path, *ends[number : number + 2])
                for path, ends in zip(files, cuts, strict=True)
            ]
            yield b"".join(shared)
        yield count.to_bytes(8)

    def join(
        self, decided: Iterable[Parts], rests: Parts, scratch: Path, memory: int
    ) -> Iterator[bytes]:
        """Yield for each range what its records are represented by."""
        with closing(SketchFiles(scratch, self._similarity.bands)) as sketches:
            counts = []
            for rest in rests:
                count, ranks, lengths, hashes = _unpacked(rest)
                sketches.write_rest(count, ranks, array("Q", lengths), hashes)
                counts.append(count)
            sketches.flush()
            firsts = list(accumulate(counts, initial=0))
            representatives = Representatives(
                sketches, _members(decided, firsts), self._similarity, scratch, memory
            )
        if not self._clusters:
            for start, end in pairwise(firsts):
                yield representatives.kept(start, end)
            return
        clusters = representatives.clusters(scratch)
        for count in counts:
            yield marshal.dumps([tuple(cluster.values()) for cluster in islice(clusters, count)])

    def verdicts(self, decided: Sequence[bytes], rest: bytes) -> Iterator[Any]:  # noqa: ARG002
        """Yield whether each record is kept, or its cluster."""
        if not self._clusters:
            return map(bool, decided[0])
        clusters = marshal.loads(decided[0])  # noqa: S302 - our own file
        return (dict(zip(("id", "size", "kept"), values, strict=True)) for values in clusters)


def _unpacked(rest: bytes) -> tuple[int, bytes, bytes, bytes]:
    return marshal.loads(rest)  # type: ignore[no-any-return]  # noqa: S302 - our own file


def _shared_of(parts: Parts, turn: int, turns: int, count: int) -> tuple[bytes, list[int], int]:
    """Find shared buckets in one part of a partition.

    Returns:
        Pairs of place in the range and number of the bucket, by range; the end of each range in
        them; and the number of buckets.
    """
    import numpy

    places, buckets, ends = [], [], []
    for part in parts:
        length = len(part) // (_PLACE_BYTES + _BUCKET_BYTES)
        of_part = numpy.frombuffer(part, "<u8", length, length * _PLACE_BYTES)
        chosen = numpy.nonzero((of_part >> numpy.uint64(32)) % numpy.uint64(turns) == turn)[0]
        places.append(numpy.frombuffer(part, "<u4", length)[chosen])
        buckets.append(of_part[chosen])
        ends.append(len(chosen))
    entries, numbers, buckets_shared = equal_buckets(
        numpy.concatenate([numpy.zeros(0, "<u8"), *buckets])
    )
    order = numpy.argsort(entries)
    entries = entries[order]
    pairs = numpy.empty((len(entries), 2), "<u4")
    pairs[:, 0] = numpy.concatenate([numpy.zeros(0, "<u4"), *places])[entries]
    pairs[:, 1] = numbers[order] + count
    return pairs.tobytes(), numpy.searchsorted(entries, numpy.cumsum(ends)).tolist(), buckets_shared


def _range_of(path: Path, start: int, end: int) -> bytes:
    with storage(path, "read"), path.open("rb") as file:
        file.seek(start * _PAIR_BYTES)
        return file.read((end - start) * _PAIR_BYTES)


def _members(decided: Iterable[Parts], firsts: Sequence[int]) -> Iterator[BucketMembers]:
    """Yield the members of the buckets of each partition, by their positions in the input."""
    import numpy

    for parts in decided:
        of_ranges = iter(parts)
        for first, part in zip(firsts[:-1], of_ranges, strict=False):
            pairs = numpy.frombuffer(part, "<u4").reshape(-1, 2)
            yield BucketMembers(pairs[:, 0].astype("<u8") + numpy.uint64(first), pairs[:, 1], 0)
        empty = numpy.zeros(0, "<u8")
        yield BucketMembers(empty, empty, int.from_bytes(next(of_ranges)))
