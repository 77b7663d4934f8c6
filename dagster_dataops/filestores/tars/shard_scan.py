"""Scan the headers of a shard: the key, the place and the parts of each sample."""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, chain
from typing import Final, NamedTuple

from dagster_dataops.errors import DuplicateKeyError, StreamSourceError
from dagster_dataops.filestores.sample_names import split_name
from dagster_dataops.filestores.tars.tar_headers import (
    BLOCK,
    HeaderReader,
    UncommonTarError,
    plain_member,
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
    found = _Rows(dataset, shard.name, duplicates)
    path = shard.location.path
    with shard.location.opened() as content:
        try:
            return found.up_to(_scan_headers(path, content, found))
        except UncommonTarError:
            found = _Rows(dataset, shard.name, duplicates)
            return _scan_with_tarfile(path, content, found)
        except DuplicateKeyError:
            raise
        except StreamSourceError as error:
            return found.up_to_error(error)


class _Rows:
    """The samples found so far."""

    def __init__(self, dataset: str, shard: str, duplicates: str) -> None:
        self._dataset, self._shard, self._duplicates = dataset, shard, duplicates
        self._keys: list[str] = []
        self._starts: list[int] = []
        self._shapes: dict[tuple[str, ...], int] = {}
        self._kinds: list[int] = []
        self._places: list[int] = []
        self._parts: dict[str, tuple[int, int]] = {}  # of the last sample
        self._prefix = "\0"  # its key and a dot

    def add(self, name: str, begin: int, place: tuple[int, int]) -> None:
        """Add a file."""
        part = name[len(self._prefix) :]
        if not name.startswith(self._prefix) or "/" in part or name[:1] in "_\0":
            divided = split_name(name)
            if divided is None:
                return
            key, part = divided
            if key + "." != self._prefix:
                self._end_sample()
                self._prefix, self._parts = key + ".", {}
                self._keys.append(key)
                self._starts.append(begin)
        if part in self._parts:
            if self._duplicates == "error":
                raise DuplicateKeyError(self._dataset, name, self._shard, self._shard)
            if self._duplicates == "first":
                return
        self._parts[part] = place

    def _end_sample(self) -> None:
        if self._keys:
            shapes = self._shapes
            self._kinds.append(shapes.setdefault(tuple(self._parts), len(shapes)))
            self._places += chain.from_iterable(self._parts.values())

    def up_to_error(self, error: StreamSourceError) -> ScannedShard:
        """Return the complete samples in front of an error; the last one may lack parts."""
        end = 0
        if self._keys:
            self._keys.pop()
            end = self._starts.pop()
        return self._made(end, [str(error.args[0]), str(error.args[1])])

    def up_to(self, end: int) -> ScannedShard:
        """Return the samples in front of a byte, where the archive ends."""
        self._end_sample()
        return self._made(end, [])

    def _made(self, end: int, error: list[str]) -> ScannedShard:
        return ScannedShard(
            keys=self._keys,
            starts=[*self._starts, end],
            shapes=[list(one) for one in self._shapes],
            kinds=self._kinds,
            places=self._places,
            error=error,
            is_common=BY_TARFILE not in self._places[1::2],
        )


def _scan_headers(path: str, content: Content, found: _Rows) -> int:
    """Add the files of an archive, and return where it ends.

    Between small files, whose pages are read anyway, many headers are read at once.
    """
    headers, at, previous = HeaderReader(path, partial(_read, content)), 0, 0
    add, data, base = found.add, b"", 0
    while True:
        place = at - base
        if place + BLOCK > len(data):
            size = _WINDOW if at - previous < _PAGE else BLOCK
            data, base, place = content.read_at(size, at), at, 0
            if len(data) < BLOCK:
                raise content.failure or torn(path, previous)
        plain = plain_member(data, place)
        if plain is not None:
            name, length = plain
            add(name, at, (at + BLOCK, length))
            previous, at = at, at + BLOCK + (length + 511 & -512)
            continue
        member = headers.member(at)
        if member is None:
            return at
        if member.is_file:
            add(member.name, at, (member.offset, member.size))
        previous, at = at, member.end


def _read(content: Content, size: int, offset: int) -> bytes:
    data = content.read_at(size, offset)
    if len(data) < size and content.failure is not None:
        raise content.failure
    return data


def _scan_with_tarfile(path: str, content: Content, found: _Rows) -> ScannedShard:
    end = 0
    try:
        for entry in entries(path, content):
            found.add(entry.name, entry.begin, (entry.begin, BY_TARFILE))
            end = entry.begin + 1
    except StreamSourceError as error:
        return found.up_to_error(error)
    return found.up_to(end)
