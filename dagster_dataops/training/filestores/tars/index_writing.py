"""``write_index``: write an index file; the samples of one shard at a time are in memory."""

import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, Self

from dagster_dataops.errors import DuplicateKeyError
from dagster_dataops.training.filestores.tars.index_file import (
    ENDS,
    MARK,
    NUMBER_BITS,
    IndexFacts,
    checksum,
    of_json,
    to_json,
)
from dagster_dataops.training.filestores.tars.shard_scan import (
    KEY,
    PLACES,
    SHAPE,
    PlacedSample,
    ScannedShard,
    TarShard,
)

_BUCKET_BITS: Final = 8  # of a CRC; the entries of one bucket are sorted at once
_SHIFT: Final = 64 - _BUCKET_BITS
_NUMBERS: Final = (1 << NUMBER_BITS) - 1


class IndexWriter:
    """An index file that is being written: samples first, then `finish`."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self._starts = array("Q", [0])
        self._buckets = [array("Q") for _ in range(1 << _BUCKET_BITS)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(self._starts) - 1

    def add(self, samples: list[PlacedSample]) -> None:
        """Append samples."""
        starts, buckets, at = self._starts, self._buckets, self._starts[-1]
        lines = []
        for number, sample in enumerate(samples, self.count):
            entry = checksum(sample[KEY]) << NUMBER_BITS | number
            buckets[entry >> _SHIFT].append(entry)
            line = to_json(sample)
            at += len(line) + 1
            starts.append(at)
            lines.append(line)
        if lines:
            self._file.write(b"\n".join(lines) + b"\n")

    def repeated_keys(self) -> Iterator[tuple[str, list[int]]]:
        """Sort the table of keys, and yield each key of several samples with their numbers."""
        self._file.flush()
        for at, bucket in enumerate(self._buckets):
            entries = self._buckets[at] = array("Q", sorted(bucket))
            alike: dict[int, list[int]] = {}  # the numbers by entry, if their CRC is the same
            last = -1
            for entry in entries:
                if entry >> NUMBER_BITS == last >> NUMBER_BITS:
                    alike.setdefault(last >> NUMBER_BITS, [last & _NUMBERS]).append(
                        entry & _NUMBERS
                    )
                last = entry
            for numbers in alike.values():
                yield from self._by_key(numbers)

    def _by_key(self, numbers: list[int]) -> Iterator[tuple[str, list[int]]]:
        found: dict[str, list[int]] = {}
        for number in numbers:
            found.setdefault(self.sample(number)[KEY], []).append(number)
        yield from ((key, all_of_it) for key, all_of_it in found.items() if len(all_of_it) > 1)

    def sample(self, number: int) -> PlacedSample:
        """Return a sample; none may be added any more."""
        start, end = self._starts[number : number + 2]
        found: PlacedSample = of_json(os.pread(self._file.fileno(), end - start, start))
        return found

    def finish(self, facts: IndexFacts) -> None:
        """Write the tables, without the samples that are left out, and the facts."""
        file, dropped = self._file, frozenset(facts.dropped)
        file.write(b" " * (-file.tell() % 8))
        starts = file.tell()
        self._starts.tofile(file)
        keys = file.tell()
        for bucket in self._buckets:
            kept = [one for one in bucket if one & _NUMBERS not in dropped] if dropped else bucket
            file.write(array("Q", kept))
        end = file.tell()
        file.write(to_json(facts))
        file.write(ENDS.pack(starts, keys, end, MARK))
        file.flush()
        os.fsync(file.fileno())


def write_index(
    path: Path,
    dataset: str,
    shards: Sequence[TarShard],
    duplicates: str,
    scan: Callable[[TarShard], ScannedShard],
) -> None:
    """Write the index of some shards.

    Raises:
        DuplicateKeyError: A key, or a part of a sample, occurs twice.
        StreamSourceError: A shard cannot be opened.
    """
    shapes: dict[tuple[str, ...], int] = {}
    facts = IndexFacts([0], [], {}, [], [], 0, [])
    files = 0
    with IndexWriter(path) as writer:
        for number, shard in enumerate(shards):
            found = scan(shard)
            _use_shapes(found, shapes)
            writer.add(found.samples)
            facts.firsts.append(writer.count)
            if found.error:
                facts.errors[str(number)] = found.error
            if not found.is_common:
                facts.uncommon.append(number)
            if any(one[KEY] > other[KEY] for one, other in pairwise(found.samples)):
                facts.unsorted.append(number)
            files += sum(len(one) - PLACES for one in found.samples) // 2
        for number in _left_out(writer, facts.firsts, dataset, shards, duplicates):
            facts.dropped.append(number)
            files -= (len(writer.sample(number)) - PLACES) // 2
        facts.shapes.extend(map(list, shapes))
        writer.finish(facts._replace(files=files, dropped=sorted(facts.dropped)))


def _use_shapes(found: ScannedShard, shapes: dict[tuple[str, ...], int]) -> None:
    """Number the shapes of a shard among those of all shards."""
    numbers = [shapes.setdefault(tuple(shape), len(shapes)) for shape in found.shapes]
    if numbers != list(range(len(numbers))):
        for sample in found.samples:
            sample[SHAPE] = numbers[sample[SHAPE]]


def _left_out(
    writer: IndexWriter,
    firsts: Sequence[int],
    dataset: str,
    shards: Sequence[TarShard],
    duplicates: str,
) -> list[int]:
    """Return the numbers of samples whose keys other samples have."""
    repeated = list(writer.repeated_keys())
    if repeated and duplicates == "error":
        key, numbers = min(repeated, key=lambda one: one[1][1])
        names = [shards[bisect_right(firsts, one) - 1].name for one in numbers[:2]]
        raise DuplicateKeyError(dataset, key, *names)
    kept = slice(1, None) if duplicates == "first" else slice(-1)
    return [number for _, numbers in repeated for number in numbers[kept]]
