"""Scan the headers of a shard: the key, the place and the parts of each sample."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from dagster_dataops.errors import DuplicateKeyError, StreamSourceError
from dagster_dataops.filestores.sample_names import NO_PREFIX, split_name
from dagster_dataops.filestores.tars.tar_headers import (
    BLOCK,
    HeaderReader,
    PlacedFile,
    UncommonTarError,
    padded,
    plain_files,
    torn,
)
from dagster_dataops.filestores.tars.uncommon_tars import entries
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.locations import Location

_PAGE: Final = 4096  # the smallest number of bytes that is read from a disk
_WINDOW: Final = 32 << 10
MAX_ROWS: Final = 50_000  # the rows that are held in memory, in about 600 bytes each
BY_TARFILE: Final = -1  # in place of a size: only tarfile can read the part

Parts = dict[str, list[int]]
"""Offset and size of each part by name; `BY_TARFILE` in place of the size of uncommon members."""


class ScannedShard(NamedTuple):
    """The samples of a shard, by columns: flat lists, which are read from JSON as they are.

    Attributes:
        keys: The key of each sample, in order.
        starts: The first byte of each sample, then the first byte behind the last one.
        shapes: The names of parts that samples have, each list once.
        kinds: The index of the shape of each sample.
        places: Offset and size of each part of each sample.
        error: The path and the reason why nothing can be read from there; empty if the archive
            ends there.
        is_common: Whether all parts can be read by offset and size, without tarfile.
    """

    keys: list[str]
    starts: list[int]
    shapes: list[list[str]]
    kinds: list[int]
    places: list[int]
    error: list[str]
    is_common: bool

    def firsts(self) -> Sequence[int]:
        """Return the index in ``places`` of the first part of each sample, then the end."""
        if len(self.shapes) == 1:
            step = 2 * len(self.shapes[0])
            return range(0, step * (len(self.keys) + 1), step)
        sizes = [2 * len(shape) for shape in self.shapes]
        return list(accumulate((sizes[kind] for kind in self.kinds), initial=0))

    def parts(self) -> list[Parts]:
        """Return the parts of each sample."""
        pairs = iter(zip(self.places[::2], self.places[1::2], strict=True))
        return [{name: list(next(pairs)) for name in self.shapes[kind]} for kind in self.kinds]

    def rows(self) -> list[tuple[str, int, Parts]]:
        """Return key, first byte and parts of each sample."""
        return list(zip(self.keys, self.starts, self.parts(), strict=False))


class Shard(NamedTuple):
    """A shard of a dataset.

    Attributes:
        name: Its name, relative to the dataset.
        location: Where it is.
    """

    name: str
    location: Location


def scan(shard: Shard, dataset: str, duplicates: str) -> ScannedShard:
    """Return the samples of a shard; only headers are read.

    Raises:
        DuplicateKeyError: A sample has a part twice.
        StreamSourceError: The shard cannot be opened.
    """
    files = _Files(dataset, shard.name, duplicates)
    path = shard.location.path
    with shard.location.opened() as content:
        try:
            return files.up_to(_scan_headers(path, content, files))
        except UncommonTarError:
            files = _Files(dataset, shard.name, duplicates)
            return _scan_with_tarfile(path, content, files)
        except DuplicateKeyError:
            raise
        except StreamSourceError as error:
            return files.up_to_error(error)


_Places: TypeAlias = dict[str, tuple[int, int]]


class _Files:
    """The files found so far: name, first byte of the header, offset of the content, and size."""

    def __init__(self, dataset: str, shard: str, duplicates: str) -> None:
        self._dataset, self._shard, self._duplicates = dataset, shard, duplicates
        self.found: list[PlacedFile] = []

    def _samples(self) -> Iterator[tuple[str, int, _Places]]:
        """Yield key, first byte and parts of each sample."""
        parts: _Places = {}
        prefix = NO_PREFIX
        last, start, length = "", 0, 0
        for name, begin, offset, size in self.found:
            part = name[length:]
            if not name.startswith(prefix) or "/" in part:
                divided = split_name(name)
                if divided is None:
                    continue
                key, part = divided
                if key != last:
                    if parts:
                        yield last, start, parts
                    last, start, parts = key, begin, {}
                    prefix = NO_PREFIX if key.startswith("_") else f"{key}."
                    length = len(key) + 1
            if part not in parts or self._replaces(name):
                parts[part] = offset, size
        if parts:
            yield last, start, parts

    def _replaces(self, name: str) -> bool:
        """Return whether a file replaces that of the same name before it.

        Raises:
            DuplicateKeyError: No name may occur twice.
        """
        if self._duplicates == "error":
            raise DuplicateKeyError(self._dataset, name, self._shard, self._shard)
        return self._duplicates == "last"

    def up_to_error(self, error: StreamSourceError) -> ScannedShard:
        """Return the complete samples in front of an error; the last one may lack parts."""
        found = list(self._samples())
        end = found.pop()[1] if found else 0
        return _by_columns(found, end, [str(error.args[0]), str(error.args[1])])

    def up_to(self, end: int) -> ScannedShard:
        """Return the samples in front of a byte, where the archive ends."""
        return _by_columns(self._samples(), end, [])


def _by_columns(
    samples: Iterable[tuple[str, int, _Places]], end: int, error: list[str]
) -> ScannedShard:
    shapes: dict[tuple[str, ...], int] = {}
    keys, starts, kinds, places = [], [], [], []  # type: list[str], list[int], list[int], list[int]
    for key, start, parts in samples:
        keys.append(key)
        starts.append(start)
        kinds.append(shapes.setdefault(tuple(parts), len(shapes)))
        for place in parts.values():
            places += place
    return ScannedShard(
        keys=keys,
        starts=[*starts, end],
        shapes=[list(one) for one in shapes],
        kinds=kinds,
        places=places,
        error=error,
        is_common=BY_TARFILE not in places[1::2],
    )


def _scan_headers(path: str, content: Content, files: _Files) -> int:
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
            files.found += plain
            _, previous, offset, size = plain[-1]
            at = offset + padded(size)
            continue
        member = headers.member(at)
        if member is None:
            return at
        if member.is_file:
            files.found.append((member.name, at, member.offset, member.size))
        previous, at = at, member.end


def _read(content: Content, size: int, offset: int) -> bytes:
    data = content.read_at(size, offset)
    if len(data) < size and content.failure is not None:
        raise content.failure
    return data


def _scan_with_tarfile(path: str, content: Content, files: _Files) -> ScannedShard:
    end = 0
    try:
        for entry in entries(path, content):
            files.found.append((entry.name, entry.begin, entry.begin, BY_TARFILE))
            end = entry.begin + 1
    except StreamSourceError as error:
        return files.up_to_error(error)
    return files.up_to(end)
