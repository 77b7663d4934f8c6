"""`IndexFile`: the samples of all shards of a dataset in one file, found by number and by key.

The file has a JSON line for each sample, in order; the first byte of each line; and a table of
keys: the CRC of each key in front of the number of its sample, sorted. `IndexFacts` is at the end.
Of an open file, at most both tables are in memory: 16 bytes for each sample. While one is written,
the samples of one shard at a time are in memory.
"""

import json
import mmap
import os
import struct
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from zlib import crc32

import orjson

from dagster_dataops.errors import DuplicateKeyError
from dagster_dataops.foundation.override import override
from dagster_dataops.training.filestores.tars.index_cache import locked
from dagster_dataops.training.filestores.tars.shard_scan import (
    KEY,
    PLACES,
    SHAPE,
    PlacedSample,
    ScannedShard,
    TarShard,
)

NUMBER_BITS: Final = 32  # of an entry of the table of keys; those above are the CRC
ENDS: Final = struct.Struct("<QQQ8s")  # the first bytes of both tables and of the facts, and `MARK`
MARK: Final = b"TARINDEX"
_MAX_HELD: Final = 50_000  # samples that are held in memory, in about 400 bytes each
_BUCKET_BITS: Final = 8  # of a CRC; the entries of one bucket are sorted at once
_SHIFT: Final = 64 - _BUCKET_BITS
_NUMBERS: Final = (1 << NUMBER_BITS) - 1


class IndexFacts(NamedTuple):
    """Facts about the shards of an index.

    Attributes:
        firsts: The number of the first sample of each shard, then the number of all samples.
        shapes: The names of parts that samples have, each list once.
        errors: By shard, the path and the reason why nothing can be read behind its samples.
        uncommon: The shards with parts that cannot be read by offset and size alone.
        unsorted: The shards whose samples are not in the order of their keys.
        files: The number of all files.
        dropped: The numbers of the samples that are left out, because their keys occur twice.
    """

    firsts: list[int]
    shapes: list[list[str]]
    errors: dict[str, list[str]]
    uncommon: list[int]
    unsorted: list[int]
    files: int
    dropped: list[int]


def to_json(value: Any) -> bytes:
    """Return a value as JSON; texts may have surrogates for bytes that are not UTF-8."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value).encode()


def of_json(data: bytes) -> Any:
    """Return the value of a JSON text that `to_json` made."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def checksum(key: str) -> int:
    """Return the CRC of a key."""
    return crc32(key.encode("utf-8", "surrogateescape"))


class IndexFile:
    """An open index file; threads and forked processes can share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = descriptor = locked(path)
        weakref.finalize(self, os.close, descriptor)
        size = os.fstat(descriptor).st_size
        ends = os.pread(descriptor, ENDS.size, max(0, size - ENDS.size))
        if len(ends) < ENDS.size or not ends.endswith(MARK):
            msg = f"{path} is no complete index"
            raise ValueError(msg)
        starts, keys, facts, _ = ENDS.unpack(ends)
        view = memoryview(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ))
        self._starts, self._keys = view[starts:keys].cast("Q"), view[keys:facts].cast("Q")
        self.facts = IndexFacts(*of_json(bytes(view[facts : size - ENDS.size])))

    @override
    def __reduce__(self) -> Any:
        return IndexFile, (self.path,)

    @cached_property
    def _held(self) -> list[PlacedSample]:
        """The samples of a small index; empty if it is large."""
        count = self.facts.firsts[-1]
        return self.samples(0, count) if count <= _MAX_HELD else []

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The numbers of the held samples by key, without those that are left out."""
        numbers = {sample[KEY]: number for number, sample in enumerate(self._held)}
        for number in self._keys if self.facts.dropped and numbers else ():
            kept = number & (1 << NUMBER_BITS) - 1
            numbers[self._held[kept][KEY]] = kept
        return numbers

    def sampler(self) -> Callable[[int], PlacedSample]:
        """Return the fastest function that returns a sample by its number."""
        return self._held.__getitem__ if self._held else self.sample

    def sample(self, number: int) -> PlacedSample:
        """Return a sample by its number."""
        start = self._starts[number]
        data = os.pread(self._descriptor, self._starts[number + 1] - start, start)
        sample: PlacedSample = of_json(data)
        return sample

    def samples(self, first: int, end: int) -> list[PlacedSample]:
        """Return the samples with consecutive numbers."""
        start = self._starts[first]
        data = os.pread(self._descriptor, self._starts[end] - start, start)
        samples: list[PlacedSample] = of_json(b"[%b]" % data[:-1].replace(b"\n", b","))
        return samples

    def find(self, key: str) -> tuple[int, PlacedSample] | None:
        """Return the number and the place of the sample with a key; ``None`` if there is none."""
        if self._held:
            known = self._numbers.get(key)
            return None if known is None else (known, self._held[known])
        entry = checksum(key) << NUMBER_BITS
        for at in range(bisect_left(self._keys, entry), len(self._keys)):
            number = self._keys[at] - entry
            if number >> NUMBER_BITS:
                break  # another CRC
            sample = self.sample(number)
            if sample[KEY] == key:
                return number, sample
        return None


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
        numbers_by_key: dict[str, list[int]] = {}
        for number in numbers:
            numbers_by_key.setdefault(self.sample(number)[KEY], []).append(number)
        yield from (
            (key, all_of_it) for key, all_of_it in numbers_by_key.items() if len(all_of_it) > 1
        )

    def sample(self, number: int) -> PlacedSample:
        """Return a sample; none may be added any more."""
        start, end = self._starts[number : number + 2]
        sample: PlacedSample = of_json(os.pread(self._file.fileno(), end - start, start))
        return sample

    def finish(self, facts: IndexFacts) -> None:
        """Write the tables, without the samples that are left out, and the facts."""
        file, dropped = self._file, frozenset(facts.dropped)
        file.write(b" " * (-file.tell() % 8))
        starts = file.tell()
        self._starts.tofile(file)
        keys = file.tell()
        for bucket in self._buckets:
            kept = (
                [entry for entry in bucket if entry & _NUMBERS not in dropped]
                if dropped
                else bucket
            )
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
    """Write the index of some shards."""
    shapes: dict[tuple[str, ...], int] = {}
    facts = IndexFacts([0], [], {}, [], [], 0, [])
    files = 0
    with IndexWriter(path) as writer:
        for number, shard in enumerate(shards):
            scanned = scan(shard)
            _use_shapes(scanned, shapes)
            writer.add(scanned.samples)
            facts.firsts.append(writer.count)
            if scanned.error:
                facts.errors[str(number)] = scanned.error
            if not scanned.is_common:
                facts.uncommon.append(number)
            if any(sample[KEY] > other[KEY] for sample, other in pairwise(scanned.samples)):
                facts.unsorted.append(number)
            files += sum(len(sample) - PLACES for sample in scanned.samples) // 2
        for number in _left_out(writer, facts.firsts, dataset, shards, duplicates):
            facts.dropped.append(number)
            files -= (len(writer.sample(number)) - PLACES) // 2
        facts.shapes.extend(map(list, shapes))
        writer.finish(facts._replace(files=files, dropped=sorted(facts.dropped)))


def _use_shapes(scanned: ScannedShard, shapes: dict[tuple[str, ...], int]) -> None:
    """Number the shapes of a shard among those of all shards."""
    numbers = [shapes.setdefault(tuple(shape), len(shapes)) for shape in scanned.shapes]
    if numbers != list(range(len(numbers))):
        for sample in scanned.samples:
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
        key, numbers = min(repeated, key=lambda entry: entry[1][1])
        names = [shards[bisect_right(firsts, number) - 1].name for number in numbers[:2]]
        raise DuplicateKeyError(dataset, key, *names)
    kept = slice(1, None) if duplicates == "first" else slice(-1)
    return [number for _, numbers in repeated for number in numbers[kept]]
