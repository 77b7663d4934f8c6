"""`IndexFile`: the samples of all shards of a dataset in one file, found by number and by key.

The file has a JSON line for each sample, in order; the first byte of each line; and a table of
keys: the CRC of each key in front of the number of its sample, sorted. `IndexFacts` is at the end.
Of an open file, at most both tables are in memory: 16 bytes for each sample.
"""

import json
import mmap
import os
import struct
import weakref
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

import orjson
from typing_extensions import override

from dagster_dataops.training.filestores.tars.index_cache import locked
from dagster_dataops.training.filestores.tars.shard_scan import KEY, PlacedSample

NUMBER_BITS: Final = 32  # of an entry of the table of keys; those above are the CRC
ENDS: Final = struct.Struct("<QQQ8s")  # the first bytes of both tables and of the facts, and `MARK`
MARK: Final = b"TARINDEX"
_MAX_HELD: Final = 50_000  # samples that are held in memory, in about 400 bytes each


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
    """Return the value of a JSON text that `to_json` made.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def checksum(key: str) -> int:
    """Return the CRC of a key."""
    return crc32(key.encode("utf-8", "surrogateescape"))


class IndexFile:
    """An open index file; threads and forked processes can share it.

    Attributes:
        facts: Facts about the shards.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no complete index.
    """

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
        found: PlacedSample = of_json(data)
        return found

    def samples(self, first: int, end: int) -> list[PlacedSample]:
        """Return the samples with consecutive numbers."""
        start = self._starts[first]
        data = os.pread(self._descriptor, self._starts[end] - start, start)
        found: list[PlacedSample] = of_json(b"[%b]" % data[:-1].replace(b"\n", b","))
        return found

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
