"""Scan the headers of a shard: the key, the place and the parts of each sample."""

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

from dagster_dataops.errors import DuplicateKeyError, StreamSourceError
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.locations import Location
from dagster_dataops.training.filestores.sample_names import NO_PREFIX, split_name
from dagster_dataops.training.filestores.tars.tar_headers import (
    BLOCK,
    HeaderReader,
    PlacedFile,
    UncommonTarError,
    padded,
    plain_files,
    torn,
)
from dagster_dataops.training.filestores.tars.uncommon_tars import entries

_PAGE: Final = 4096  # the smallest number of bytes that is read from a disk
_WINDOW: Final = 32 << 10
BY_TARFILE: Final = -1  # in place of a size: only tarfile can read the part

Parts = dict[str, list[int]]
"""Offset and size of each part by name; `BY_TARFILE` in place of the size of uncommon members."""

PlacedSample: TypeAlias = list[Any]
"""Key, first byte, the byte behind the last one, the number of the shape, then offset and size of
each part. A list, so that JSON needs no conversion."""

KEY, START, END, SHAPE, PLACES = range(5)


class ScannedShard(NamedTuple):
    """The samples of a shard.

    Attributes:
        samples: The samples, in order.
        shapes: The names of parts that samples have, each list once.
        error: The path and the reason why nothing can be read behind the samples; empty if the
            archive ends there.
    """

    samples: list[PlacedSample]
    shapes: list[list[str]]
    error: list[str]

    def rows(self) -> list[tuple[str, int, Parts]]:
        """Return key, first byte and parts of each sample."""
        return [
            (sample[KEY], sample[START], parts_of(sample, self.shapes[sample[SHAPE]]))
            for sample in self.samples
        ]

    @property
    def is_common(self) -> bool:
        """Whether all parts can be read by offset and size, and none has a reserved name."""
        reserved = any(part.startswith("__") for shape in self.shapes for part in shape)
        return not reserved and not any(BY_TARFILE in sample for sample in self.samples)


def parts_of(sample: PlacedSample, shape: Sequence[str]) -> Parts:
    """Return offset and size of each part of a sample; ``shape`` has the names of the parts."""
    return {name: sample[at : at + 2] for name, at in zip(shape, count(PLACES, 2), strict=False)}


class TarShard(NamedTuple):
    """A shard of a dataset; the name is relative to the dataset."""

    name: str
    location: Location


def scan(shard: TarShard, dataset: str, duplicates: str) -> ScannedShard:
    """Return the samples of a shard; only headers are read.

    Raises:
        DuplicateKeyError: A sample has a part twice.
        StreamSourceError: The shard cannot be opened.
    """
    files: list[PlacedFile] = []
    end, error = 0, []
    with shard.location.opened() as content:
        try:
            end = _find_files(shard.location.path, content, files)
        except StreamSourceError as failure:
            error = [str(failure.args[0]), str(failure.args[1])]
    samples = _Samples(dataset, shard.name, duplicates)
    samples.find(files, end)
    if error:
        del samples.samples[-1:]  # it may lack parts
    return ScannedShard(samples.samples, [list(shape) for shape in samples.shapes], error)


_Places: TypeAlias = dict[str, tuple[int, int]]


class _Samples:
    """The samples found so far, and the numbers of their shapes."""

    def __init__(self, dataset: str, shard: str, duplicates: str) -> None:
        self._dataset, self._shard, self._duplicates = dataset, shard, duplicates
        self.samples: list[PlacedSample] = []
        self.shapes: dict[tuple[str, ...], int] = {}

    def find(self, files: list[PlacedFile], end: int) -> None:
        """Make samples of adjacent files with one key; the last one ends at byte ``end``."""
        parts: _Places = {}
        prefix = NO_PREFIX
        last, start, length = "", 0, 0
        for name, begin, offset, size in files:
            part = name[length:]
            if not name.startswith(prefix) or "/" in part:
                divided = split_name(name)
                if divided is None:
                    continue
                key, part = divided
                if key != last:
                    if parts:
                        self._add(last, start, begin, parts)
                    last, start, parts = key, begin, {}
                    prefix = NO_PREFIX if key.startswith("_") else f"{key}."
                    length = len(key) + 1
            if part not in parts or self._replaces(name):
                parts[part] = offset, size
        if parts:
            self._add(last, start, end, parts)

    def _add(self, key: str, start: int, end: int, parts: _Places) -> None:
        names = tuple(parts)
        sample = [key, start, end, self.shapes.setdefault(names, len(self.shapes))]
        for place in parts.values():
            sample += place
        self.samples.append(sample)

    def _replaces(self, name: str) -> bool:
        """Return whether a file replaces that of the same name before it."""
        if self._duplicates == "error":
            raise DuplicateKeyError(self._dataset, name, self._shard, self._shard)
        return self._duplicates == "last"


def _find_files(path: str, content: Content, files: list[PlacedFile]) -> int:
    """Add the files of an archive, and return where it ends."""
    try:
        return _read_headers(path, content, files)
    except UncommonTarError:
        files.clear()
    end = 0
    for entry in entries(path, content):
        files.append((entry.name, entry.begin, entry.begin, BY_TARFILE))
        end = entry.begin + 1
    return end


def _read_headers(path: str, content: Content, files: list[PlacedFile]) -> int:
    """Add the files of an archive, and return where it ends.

    Between small files, whose pages are read anyway, many headers are read at once.
    """
    headers, at, previous = HeaderReader(path, partial(_read, content)), 0, 0
    data, base = b"", 0
    while True:
        if at + BLOCK > base + len(data):
            size = _WINDOW if at - previous < _PAGE else BLOCK
            data, base = content.read_at(size, at), at
            if len(data) < BLOCK:
                raise content.failure or torn(path, previous)
        plain = plain_files(data, at - base, base)
        if plain:
            files += plain
            _, previous, offset, size = plain[-1]
            at = offset + padded(size)
            continue
        member = headers.member(at)
        if member is None:
            return at
        if member.is_file:
            files.append((member.name, at, member.offset, member.size))
        previous, at = at, member.end


def _read(content: Content, size: int, offset: int) -> bytes:
    data = content.read_at(size, offset)
    if len(data) < size and content.failure is not None:
        raise content.failure
    return data
