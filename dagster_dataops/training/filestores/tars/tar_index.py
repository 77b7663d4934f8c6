"""`TarIndex`: the samples of tar shards by key and by number, in a file of the cache folder.

Each shard is scanned once: its scan is a file of its own, so an index that is killed continues with
the next shard, and new shards are added without reading the old ones.
"""

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.training.filestores.tars.index_cache import (
    cache_folder,
    mark_used,
    publish,
    sweep,
)
from dagster_dataops.training.filestores.tars.index_file import (
    IndexFile,
    of_json,
    to_json,
    write_index,
)
from dagster_dataops.training.filestores.tars.shard_scan import (
    KEY,
    PLACES,
    SHAPE,
    START,
    PlacedSample,
    ScannedShard,
    TarShard,
    scan,
)

_VERSION: Final = 3
_BLOCK: Final = 1024  # samples that are read at once
_NAMES: Final = 32  # samples of each shard that are read at once to merge the names of all


class IndexedFile(NamedTuple):
    """The place of a file: its shard by number, the first bytes of its sample and of its content.

    The size is `BY_TARFILE` if only tarfile can read it.
    """

    shard: int
    start: int
    offset: int
    size: int


def scanned(shard: TarShard, dataset: str, duplicates: str) -> ScannedShard:
    """Return the samples of a shard, from the cache if its file did not change."""
    version = shard.location.stamp() or shard.location.identity()
    name = digest([_VERSION, dataset, shard.location.path, version, duplicates])
    path = cache_folder() / f"{name}.json"
    try:
        known = ScannedShard(*of_json(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        result = scan(shard, dataset, duplicates)
    else:
        mark_used(path)
        return known
    data = to_json([*result])
    publish(path, lambda draft: draft.write_bytes(data))
    return result


class TarIndex:
    """The samples of some shards. Building it scans the shards that are not in the cache.

    Args:
        dataset: The path of the dataset.
        shards: The shards, in order.
        duplicates: ``error``, or which of two samples with one key to keep: ``first`` or ``last``.
        scanner: Returns the samples of a shard; by default, its headers are scanned.
        written: The time in nanoseconds when another program had found the samples that the scanner
            returns. It must be another one when they change.

    Attributes:
        facts: Facts about the shards.

    Raises:
        DuplicateKeyError: A key, or a part of a sample, occurs twice.
        StreamSourceError: A shard cannot be opened.
    """

    def __init__(
        self,
        dataset: str,
        shards: Sequence[TarShard],
        duplicates: str = "error",
        scanner: Callable[[TarShard], ScannedShard] | None = None,
        written: int | None = None,
    ) -> None:
        self.shards, self._written = shards, written
        versions = [shard.location.stamp() or shard.location.identity() for shard in shards]
        places = [shard.location.path for shard in shards]
        self._stamps = dict(zip(places, versions, strict=True))
        self.version = digest([_VERSION, dataset, places, versions, duplicates, written])
        path = cache_folder() / f"{self.version}.index"
        try:
            self._file = IndexFile(path)
        except (OSError, ValueError):
            sweep(path.parent)
            scanner = scanner or (lambda shard: scanned(shard, dataset, duplicates))
            publish(path, lambda draft: write_index(draft, dataset, shards, duplicates, scanner))
            self._file = IndexFile(path)
        mark_used(path)
        self.facts = self._file.facts
        self.firsts, self.shapes = self.facts.firsts, self.facts.shapes

    def is_current(self, shard: TarShard) -> bool:
        """Whether a local shard is the file that was indexed."""
        stamp = shard.location.stamp()
        if stamp is None or stamp != self._stamps.get(shard.location.path):
            return False
        _, modified, changed, _ = stamp
        return self._written is None or max(modified, changed) < self._written

    def is_common(self, number: int) -> bool:
        """Whether all parts in a shard can be read by offset and size."""
        return number not in self.facts.uncommon

    def error(self, number: int) -> list[str]:
        """Return path and reason why nothing can be read behind the samples of a shard."""
        return self.facts.errors.get(str(number), [])

    def sampler(self) -> Callable[[int], PlacedSample]:
        """Return the function that returns the place of a sample by its number in the dataset."""
        return self._file.sampler()

    def samples(self, first: int, end: int, size: int = _BLOCK) -> Iterator[list[PlacedSample]]:
        """Yield the places of consecutive samples, at most ``size`` at once."""
        for start in range(first, end, size):
            yield self._file.samples(start, min(end, start + size))

    def find(self, key: str, part: str) -> IndexedFile | None:
        """Return the place of a file; ``None`` if there is none."""
        place = self._file.find(key)
        if place is None:
            return None
        number, sample = place
        shape = self.shapes[sample[SHAPE]]
        if part not in shape:
            return None
        at = PLACES + 2 * shape.index(part)
        return IndexedFile(self.shard_of(number), sample[START], sample[at], sample[at + 1])

    def number(self, key: str) -> int | None:
        """Return the number of a sample; ``None`` if there is none."""
        place = self._file.find(key)
        return None if place is None else place[0]

    def shard_of(self, number: int) -> int:
        """Return the number of the shard of a sample."""
        return bisect_right(self.firsts, number) - 1

    def names(self) -> Iterator[str]:
        """Yield the names of all files, sorted by key."""
        dropped = frozenset(self.facts.dropped)
        of_shards = (self._keys(number, dropped) for number in range(len(self.shards)))
        for key, shape in heapq.merge(*of_shards):
            for part in self.shapes[shape]:
                yield f"{key}.{part}"

    def _keys(self, shard: int, dropped: frozenset[int]) -> Iterator[tuple[str, int]]:
        """Yield the key and the shape of each sample of a shard, sorted."""
        first, end = self.firsts[shard], self.firsts[shard + 1]
        samples = chain.from_iterable(self.samples(first, end, _NAMES))
        keys = (
            (sample[KEY], sample[SHAPE])
            for number, sample in enumerate(samples, first)
            if number not in dropped
        )
        yield from sorted(keys) if shard in self.facts.unsorted else keys
