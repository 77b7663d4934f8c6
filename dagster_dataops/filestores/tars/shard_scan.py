"""Scan the headers of a shard: the key, the place and the parts of each sample."""

from collections.abc import Container
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

BY_TARFILE: Final = -1  # in place of a size: only tarfile can read the part

Parts = dict[str, list[int]]
"""Offset and size of each part by name; `BY_TARFILE` in place of the size of uncommon members."""


class ScannedShard(NamedTuple):
    """The samples of a shard, by columns: they are read from JSON as they are.

    Attributes:
        keys: The key of each sample, in order.
        starts: The first byte of each sample, then the first byte behind the last one.
        parts: The parts of each sample.
        error: The path and the reason why nothing can be read from there; empty if the archive
            ends there.
        is_common: Whether all parts can be read by offset and size, without tarfile.
    """

    keys: list[str]
    starts: list[int]
    parts: list[Parts]
    error: list[str]
    is_common: bool

    def rows(self) -> "zip[tuple[str, int, Parts]]":
        """Return key, first byte and parts of each sample."""
        return zip(self.keys, self.starts, self.parts, strict=False)

    def without(self, starts: Container[int]) -> "ScannedShard":
        """Return the samples but for those that begin at certain bytes."""
        kept = [row for row in self.rows() if row[1] not in starts]
        keys, firsts, parts = map(list, zip(*kept, strict=True)) if kept else ([], [], [])
        return self._replace(keys=keys, starts=[*firsts, self.starts[-1]], parts=parts)


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
    with shard.location.opened() as content:
        try:
            end = _scan_headers(shard.location.path, content, found)
        except UncommonTarError:
            found = _Rows(dataset, shard.name, duplicates)
            return _scan_with_tarfile(shard.location.path, content, found)
        except DuplicateKeyError:
            raise
        except StreamSourceError as error:
            return found.up_to_error(error)
    return found.up_to(end)


class _Rows:
    """The samples found so far."""

    def __init__(self, dataset: str, shard: str, duplicates: str) -> None:
        self._keys: list[str] = []
        self._starts: list[int] = []
        self._all: list[Parts] = []
        self._dataset, self._shard, self._duplicates = dataset, shard, duplicates
        self._key, self._parts = "", {}  # type: str, Parts

    def add(self, name: str, begin: int, place: list[int]) -> None:
        """Add a file."""
        divided = split_name(name)
        if divided is None:
            return
        key, part = divided
        if key != self._key:
            self._key, self._parts = key, {}
            self._keys.append(key)
            self._starts.append(begin)
            self._all.append(self._parts)
        if part in self._parts:
            if self._duplicates == "error":
                raise DuplicateKeyError(self._dataset, name, self._shard, self._shard)
            if self._duplicates == "first":
                return
        self._parts[part] = place

    def up_to_error(self, error: StreamSourceError) -> ScannedShard:
        """Return the complete samples in front of an error; the last one may lack parts."""
        end = 0
        if self._keys:
            self._keys.pop()
            self._all.pop()
            end = self._starts.pop()
        return self.up_to(end)._replace(error=[str(error.args[0]), str(error.args[1])])

    def up_to(self, end: int) -> ScannedShard:
        """Return the samples in front of a byte, where the archive ends."""
        is_common = all(size != BY_TARFILE for parts in self._all for _, size in parts.values())
        return ScannedShard(self._keys, [*self._starts, end], self._all, [], is_common)


def _scan_headers(path: str, content: Content, found: _Rows) -> int:
    def read(size: int, offset: int) -> bytes:
        data = content.read_at(size, offset)
        if len(data) < size and content.failure is not None:
            raise content.failure
        return data

    headers, at, previous = HeaderReader(path, read), 0, 0
    read_at, add = content.read_at, found.add
    while True:
        header = read_at(BLOCK, at)
        plain = plain_member(header, 0) if len(header) == BLOCK else None
        if plain is not None:
            name, size = plain
            add(name, at, [at + BLOCK, size])
            previous, at = at, at + BLOCK + (size + 511 & -512)
            continue
        if len(header) < BLOCK:
            raise content.failure or torn(path, previous)
        member = headers.member(at)
        if member is None:
            return at
        if member.is_file:
            add(member.name, at, [member.offset, member.size])
        previous, at = at, member.end


def _scan_with_tarfile(path: str, content: Content, found: _Rows) -> ScannedShard:
    end = 0
    try:
        for entry in entries(path, content):
            found.add(entry.name, entry.begin, [entry.begin, BY_TARFILE])
            end = entry.begin + 1
    except StreamSourceError as error:
        return found.up_to_error(error)
    return found.up_to(end)
