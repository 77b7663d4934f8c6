"""`TarSamples`: a source that yields the samples of tar shards."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Final
from weakref import WeakSet, finalize

import xxhash

from dagster_dataops.errors import DuplicateKeyError, StreamSourceError, UnknownSampleError
from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.streams.core.item_failures import FailureCounter, FailureHandler
from dagster_dataops.streams.core.random_access import (
    MISSING,
    IndexedItems,
    RandomAccess,
    UnreadItem,
    unreadable,
)
from dagster_dataops.streams.core.stage import BlockwiseCursor, ReadContext, SourceStage, State
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.file_sets import identity
from dagster_dataops.training.cooking.crude_sources import CrudeSource, IndexRows, Row
from dagster_dataops.training.filestores.energon.energon_layout import (
    ShardedDataset,
    prepared_counts,
    with_all_shards,
)
from dagster_dataops.training.filestores.store import FileStore
from dagster_dataops.training.filestores.tar_store import TarStore
from dagster_dataops.training.filestores.tars.open_shards import MAX_KEPT, OpenShards, SampleReader
from dagster_dataops.training.filestores.tars.row_cutting import (
    cut_by_rows,
    row_reader,
    sample_maker,
)
from dagster_dataops.training.filestores.tars.shard_scan import (
    END,
    KEY,
    SHAPE,
    START,
    PlacedSample,
    TarShard,
    parts_of,
)
from dagster_dataops.training.filestores.tars.tar_headers import UncommonTarError, torn
from dagster_dataops.training.filestores.tars.tar_samples import (
    CutSamples,
    SampleCutter,
    ShardIdentity,
    copier,
)
from dagster_dataops.training.filestores.tars.uncommon_tars import cut_with_tarfile

BLOCK_BYTES: Final = 64 << 10
MAX_BLOCK_BYTES: Final = 8 << 20
_FEW_SAMPLES: Final = 8  # a block with fewer samples is read again from too far


@dataclass(eq=False)
class TarSamples(BlockwiseCursor, CrudeSource):
    """Yield the samples of tar shards, one shard after another.

    The position is the number of the shard, the first byte of the next sample in it, and the
    number of that sample.

    Attributes:
        files: The shards and their index.
        checked: Whether the index is used to find keys that occur twice.
        block_size: The number of bytes to read at once.
    """

    name: ClassVar[str] = "read_tar"
    saved: ClassVar[tuple[str, ...]] = ("_shard", "start", "sample", "failed_before")
    takes_unread: ClassVar[bool] = True
    files: TarStore
    checked: bool
    block_size: int

    @property
    def data(self) -> ShardedDataset:
        """The shards."""
        return self.files.dataset

    @property
    @override
    def shard_names(self) -> Sequence[str]:
        return [shard.name for shard in self.data.shards]

    @override
    def options(self) -> dict[str, Any]:
        parts = sorted(self.data.parts) if self.data.parts is not None else None
        exclude = sorted(self.data.exclude)
        more = {"duplicates": self.files.duplicates, "parts": parts, "exclude": exclude}
        return {**super().options(), **more}

    @override
    def identity(self) -> object:
        locations = [shard.location for shard in self.data.shards]
        return identity(locations) if locations else []

    @property
    @override
    def place(self) -> str:
        return self.data.path

    @property
    @override
    def form(self) -> str:
        counts = prepared_counts(self.data)
        known = [counts.get(shard.name) for shard in self.data.shards]
        shards = counted(len(known), "tar shards")
        if None in known or not known:
            return shards
        return f"{counted(sum(filter(None, known)), 'samples')} in {shards}, prepared by Energon"

    @override
    def store(self) -> FileStore:
        return TarStore(with_all_shards(self.data), self.files.duplicates)

    @override
    def begin(self, context: ReadContext) -> None:
        self._unread = context.unread

    @override
    def reset(self) -> None:
        super().reset()
        self._shard = self._first = 0
        self._starts = [0]
        self._numbers: list[int] | None = None
        self._failed_before = self.failed

    @override
    def state(self) -> State:
        return self._state_at(self._length - self._remaining.__length_hint__())

    def previous_state(self) -> State:
        """Return the position before the last sample that was read."""
        return self._state_at(self.read - 1)

    def _state_at(self, read: int) -> State:
        return {
            "shard": self._shard,
            "start": self._starts[read],
            "sample": self._first + read if self._numbers is None else self._numbers[read],
            "failed_before": self._failed_before,
        }

    @property
    def start(self) -> int:
        """The first byte of the next sample in its shard."""
        return self._starts[self.read]

    @start.setter
    def start(self, at: int) -> None:
        self._starts = [at]

    @property
    def sample(self) -> int:
        """The number of the next sample."""
        return self._first + self.read if self._numbers is None else self._numbers[self.read]

    @sample.setter
    def sample(self, number: int) -> None:
        self._first = number

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        left_out = left_out_samples(self) if self.checked else {}
        for number in range(self._shard, len(self.data.shards)):
            try:
                yield from self._of_shard(number, left_out.get(number))
            except DuplicateKeyError:
                raise
            except StreamSourceError as error:
                self.counter.handle({"__shard__": self.data.shards[number].name}, error)
            self._end_block(number + 1, 0)
            if self.checked:  # a shard that failed has not given all of its samples
                self._first = self.files.index.firsts[number + 1]
        self._failed_before = self.counter.count

    def _end_block(self, number: int, at: int) -> None:
        """Go to a byte of a shard; all items of the block were read."""
        self._shard = number
        self._starts, self._numbers = [at], None
        self.begin_block([])

    def _of_shard(self, number: int, left_out: frozenset[int] | None) -> Iterator[Iterator[Any]]:
        for cut in self._cuts(number):
            self._failed_before = self.counter.count
            first, count = self._first, len(cut.samples)
            yield self._begin(cut, left_out)
            self._end_block(number, cut.starts[-1])
            self._first = first + count
            if cut.is_last:
                return

    def _cuts(self, number: int) -> Iterator[CutSamples]:
        shard, is_placed = self.data.shards[number], self.is_placed(number)
        if self._unread and is_placed and (self.counter.raises or self._is_current(number)):
            yield from self._cut_unread(number)
            return
        with shard.location.opened() as content:
            identity = identity_of(self, shard)
            if is_placed:
                yield from self._cut_placed(content, number, identity)
            else:
                yield from self._cut(content, identity)

    def _begin(self, cut: CutSamples, left_out: frozenset[int] | None) -> Iterator[Any]:
        samples, starts, first = cut.samples, cut.starts, self._first
        numbers = range(first, first + len(samples))
        if left_out is not None and not left_out.isdisjoint(numbers):
            kept = [at for at, number in enumerate(numbers) if number not in left_out]
            samples = [samples[at] for at in kept]
            self._numbers = [*(first + at for at in kept), numbers.stop]
            starts = [starts[at] for at in [*kept, -1]]
        self._starts = starts
        return self.begin_block(samples)

    def _cut_placed(
        self, content: Content, number: int, identity: ShardIdentity
    ) -> Iterator[CutSamples]:
        index, first = self.files.index, self._first
        maker = sample_maker(identity, index.shapes)
        places = index.samples(first, index.firsts[number + 1])
        yield from cut_by_rows(maker, identity.path, content, places, first, self.block_size)
        if error := index.error(number):
            raise StreamSourceError(*error)

    def _cut_unread(self, number: int) -> Iterator[CutSamples]:
        index, first = self.files.index, self._first
        read = _PlacedSamples(self, number).sample
        for places in index.samples(first, index.firsts[number + 1]):
            samples: list[Any] = [
                UnreadItem(partial(read, place, at)) for at, place in enumerate(places, first)
            ]
            starts = [*(place[START] for place in places), places[-1][END]]
            yield CutSamples(samples, starts, is_last=False)
            first += len(places)
        if error := index.error(number):
            raise StreamSourceError(*error)

    def _cut(self, content: Content, identity: ShardIdentity) -> Iterator[CutSamples]:
        cutter, size, at = SampleCutter(identity), self.block_size, self._starts[0]
        while True:
            data = content.read_at(size, at)
            failure = content.failure
            try:
                cut = cutter.cut(data, at, self._first)
            except UncommonTarError:
                yield from cut_with_tarfile(identity, content, at, self._first)
                return
            if cut.samples or cut.is_last:
                yield cut
                if len(cut.samples) < _FEW_SAMPLES:
                    size = min(2 * size, max(size, MAX_BLOCK_BYTES))
            elif cut.starts[-1] == at:
                if len(data) < size:
                    raise failure or torn(identity.path, at)
                size *= 2
            at = cut.starts[-1]

    def is_placed(self, number: int) -> bool:
        """Whether the samples of a shard can be read by their places in the index."""
        if not (self.checked and self.data.shards[number].location.is_plain):
            return False
        return self.files.index.is_common(number)

    @override
    def access(self, context: ReadContext) -> RandomAccess | None:
        if not (self.checked and all(shard.location.is_plain for shard in self.data.shards)):
            return None
        counter = context.failures.counter(self.name)
        return RandomAccess(counter, self.opened_items, self._is_sure)

    def _is_sure(self) -> bool:
        return all(map(self._is_current, range(len(self.data.shards))))

    def _is_current(self, number: int) -> bool:
        return self.checked and self.files.index.is_current(self.data.shards[number])

    @override
    def bounds(self) -> Sequence[int]:
        firsts = self.files.index.firsts
        left_out = sorted(chain.from_iterable(left_out_samples(self).values()))
        return [first - bisect_left(left_out, first) for first in firsts]

    @contextmanager
    def opened_items(self, counter: FailureCounter) -> "Iterator[IndexedTarSamples]":
        """Open the samples by number; ``counter`` counts those that cannot be read."""
        with closing(OpenShards()) as shards:
            yield IndexedTarSamples(self, shards, counter)

    @override
    def sample_of_key(self, shard: str, key: str) -> dict[str, Any]:
        index = self.files.index
        number = index.number(key)
        if number is None or shard not in {"", self.data.shards[index.shard_of(number)].name}:
            reason = "the dataset has changed, or the key belongs to another one or another split"
            raise UnknownSampleError(self.place, key, reason)
        with self.opened_items(FailureHandler().counter(self.name)) as items:
            return items.sample(number)

    @override
    def index_source(self, *, digests: bool) -> SourceStage:
        return TarRows(self, digests)


class _PlacedSamples:
    """The samples of one shard, read by their places; it stays open until this is dropped.

    If very many are open, it is opened for each sample instead.
    """

    def __init__(self, source: TarSamples, number: int) -> None:
        self._source, self._shard = source, source.data.shards[number]
        self._reader: SampleReader | None = None

    def sample(self, place: PlacedSample, number: int) -> Any:
        """Return a sample by its place, and by its number among all."""
        try:
            reader = self._reader = self._reader or self._made()
            return reader(place, number)
        except DuplicateKeyError:
            raise
        except StreamSourceError as error:
            self._source.counter.handle({"__shard__": self._shard.name}, error)
            raise unreadable() from error

    def _made(self) -> SampleReader:
        if len(_KEPT) >= MAX_KEPT:
            return placed_reader(self._source, self._shard, self._read_alone, trusted=False)
        content = self._shard.location.opened()
        finalize(self, content.close)
        _KEPT.add(self)
        return placed_reader(self._source, self._shard, content.read_at, trusted=True)

    def _read_alone(self, size: int, offset: int) -> bytes:
        with self._shard.location.opened() as content:
            return content.read_at(size, offset)


_KEPT: Final[WeakSet[_PlacedSamples]] = WeakSet()  # those that are open


def identity_of(source: TarSamples, shard: TarShard) -> ShardIdentity:
    """Return the values that all samples of a shard share."""
    return ShardIdentity(
        source.data.path,
        shard.name,
        shard.location.path,
        copier(dict(source.labels.subflavors)),
        source.data.parts,
        source.files.duplicates,
        source.checked and source.files.index.is_current(shard),
    )


def placed_reader(
    source: TarSamples, shard: TarShard, read: Callable[[int, int], bytes], *, trusted: bool
) -> SampleReader:
    """Return a function that reads a sample of a shard by its place.

    It is ``trusted`` if it stays open; then it is open already: no other file can be trusted.
    """
    identity = identity_of(source, shard)
    identity = identity if trusted else replace(identity, trusted=False)
    return row_reader(sample_maker(identity, source.files.index.shapes), identity.path, read)


def left_out_samples(source: TarSamples) -> dict[int, frozenset[int]]:
    """Return the numbers of the samples that are left out, by the number of the shard."""
    index = source.files.index
    numbers = set(index.facts.dropped)
    for name in source.data.exclude:
        shard, _, key = name.partition(".tar/")
        number = index.number(key) if key else None
        if number is not None and index.shards[index.shard_of(number)].name == f"{shard}.tar":
            numbers.add(number)
    by_shard: dict[int, set[int]] = {}
    for number in numbers:
        by_shard.setdefault(index.shard_of(number), set()).add(number)
    return {shard: frozenset(numbers) for shard, numbers in by_shard.items()}


class IndexedTarSamples(IndexedItems):
    """The samples of open shards, by number."""

    def __init__(self, source: TarSamples, shards: OpenShards, counter: FailureCounter) -> None:
        self._source, self._shards, self._counter = source, shards, counter
        self._index = index = source.files.index
        left_out = sorted(chain.from_iterable(left_out_samples(source).values()))
        self.size = index.firsts[-1] - len(left_out)
        self._before = [number - at for at, number in enumerate(left_out)]
        self._keep_open = len(source.data.shards) <= MAX_KEPT
        self._readers: list[SampleReader | None] = [None] * len(source.data.shards)
        self._firsts, self._place = index.firsts, index.sampler()

    def _reader(self, number: int) -> SampleReader:
        """Make the function that reads the samples of a shard."""
        source, shard = self._source, self._source.data.shards[number]
        if source.is_placed(number):
            keep = self._keep_open
            read = self._shards.kept(shard).read_at if keep else partial(self._shards.read, shard)
            reader = placed_reader(source, shard, read, trusted=keep)
        else:
            reader = self._shards.reader(shard, identity_of(source, shard))
        self._readers[number] = reader
        return reader

    @override
    def item(self, number: int) -> Any:
        if self._before:
            number += bisect_right(self._before, number)
        shard = bisect_right(self._firsts, number) - 1
        try:
            reader = self._readers[shard] or self._reader(shard)
            return reader(self._place(number), number)
        except DuplicateKeyError:
            raise
        except StreamSourceError as error:
            self._counter.handle({"__shard__": self._source.data.shards[shard].name}, error)
        return MISSING

    def sample(self, number: int) -> dict[str, Any]:
        """Return a sample by its number among all, also those that are left out."""
        shard = self._index.shard_of(number)
        reader = self._readers[shard] or self._reader(shard)
        return reader(self._place(number), number)


@dataclass(eq=False)
class TarRows(BlockwiseCursor, IndexRows):
    """Yield a line of an index for each sample; only headers are read, but parts for ``digests``.

    The position is the number of the shard, and the number of read samples in it.
    """

    name: ClassVar[str] = "index_tar"
    saved: ClassVar[tuple[str, ...]] = ("_shard", "read_samples", "_first", "failed_before")
    source: TarSamples
    digests: bool

    @override
    def options(self) -> dict[str, Any]:
        return {**self.source.options(), "digests": self.digests}

    @override
    def reset(self) -> None:
        super().reset()
        self._shard = self._skipped = self._before = self._first = 0
        self._failed_before = self.failed

    @property
    def read_samples(self) -> int:
        """The number of samples that were read of the shard."""
        return self._before + self.read

    @read_samples.setter
    def read_samples(self, count: int) -> None:
        self._before = self._skipped = count

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        index = self.source.files.index
        left_out = left_out_samples(self.source)
        for number in range(self._shard, len(self.source.data.shards)):
            self._failed_before = self.counter.count
            yield from self._of_shard(number, left_out.get(number, frozenset()))
            if error := index.error(number):
                shard = self.source.data.shards[number].name
                self.counter.handle({"__shard__": shard}, StreamSourceError(*error))
            self._shard, self._first = number + 1, index.firsts[number + 1]
            self._before = self._skipped = 0
        self._failed_before = self.counter.count

    def _of_shard(self, number: int, left_out: frozenset[int]) -> Iterator[Iterator[Any]]:
        index, shard = self.source.files.index, self.source.data.shards[number]
        row = self._row_maker(shard)
        self._first = first = index.firsts[number]
        for samples in index.samples(first, index.firsts[number + 1]):
            numbers = [at for at in range(first, first + len(samples)) if at not in left_out]
            passed = min(self._skipped, len(numbers))
            self._skipped -= passed
            rows = [row(at, samples[at - first]) for at in numbers[passed:]]
            first += len(samples)
            if self.digests:
                self._add_digests(shard, rows)
            yield self.begin_block(rows)
            self._before += len(rows)
            self.begin_block([])

    def _row_maker(self, shard: TarShard) -> Callable[[int, PlacedSample], Row]:
        source, shapes = self.source, self.source.files.index.shapes
        dataset, name, wanted = source.data.path, shard.name, source.data.parts
        shared: Row = {"version": shard_version(shard), **source.labels.of_rows()}
        if source.files.duplicates != "error":
            shared["duplicates"] = source.files.duplicates

        def row(number: int, sample: PlacedSample) -> Row:
            parts = parts_of(sample, shapes[sample[SHAPE]])
            if wanted is not None:
                parts = {part: place for part, place in parts.items() if part in wanted}
            return {
                "key": sample[KEY],
                "dataset": dataset,
                "shard": name,
                "index": number,
                "at": sample[START],
                "parts": parts,
                **shared,
            }

        return row

    def _add_digests(self, shard: TarShard, rows: list[Row]) -> None:
        with closing(OpenShards()) as shards:
            for row in rows:
                row["digests"] = {
                    part: xxhash.xxh3_64_hexdigest(
                        shards.part(shard, row["at"], f"{row['key']}.{part}", place)
                    )
                    for part, place in row["parts"].items()
                }


def shard_version(shard: TarShard) -> str:
    """Return a digest of the size and of both ends of a shard."""
    return digest(shard.location.identity())[:16]
