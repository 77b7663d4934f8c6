"""`CachedFile`: a file of a server that is fetched once and kept in a folder of this machine."""

import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Final, Protocol

from dagster_dataops.configuration import config
from dagster_dataops.datasets.file_values.opened_file import OpenedFile, open_file
from dagster_dataops.errors import FileChangedError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.parts import function_of_part

_LOGGER: Final = logging.getLogger(__name__)
_MOST_IN_MEMORY: Final = 256 << 20  # bytes of a file that is held in memory
_GIGABYTE: Final = 1 << 30
_TAIL_BYTES: Final = 1 << 14  # beside the content of a kept file, at most


class _KeptFile(Protocol):
    """A file of a cache, open for reads by ranges."""

    def read(self, size: int, offset: int) -> bytes:
        """Return bytes."""

    def close(self) -> None:
        """Close it."""


class _Cache(Protocol):
    """A file in a cache."""

    def find(self) -> bytes | None:
        """Return the file, if it is in the cache."""

    def content(self) -> bytes:
        """Return the file, from the cache if it is there; else it is read and kept."""

    def opened(self) -> _KeptFile | None:
        """Return the file for reads by ranges, if it is in the cache."""

    def keeping(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the blocks of the file, and keep it."""


class _FileOfServer(OpenedFile):
    """A file of a server. Reading the whole file takes it from the cache, or adds it.

    Parts are fetched from the server unless the cache has the file.
    """

    def __init__(self, file: OpenedFile) -> None:
        self.name, self.size, self.version = file.name, file.size, file.version
        self._file = file
        self._kept = False

    @property
    @override
    def state(self) -> list[object]:
        return self._file.state

    @property
    @override
    def is_remote(self) -> bool:
        return self._file.is_remote

    @cached_property
    def _cache(self) -> _Cache:
        folder, limit = str(config.file_cache), config.file_cache_gb
        version = f"{self.size} {self.version}"
        cache: _Cache = function_of_part("cached_file")(
            folder, limit, self.name, version, self._fetched
        )
        return cache

    def _fetched(self) -> bytes:
        data = self._file.read_all()
        self._check_whole(len(data))
        return data

    def _check_whole(self, size: int) -> None:
        self._file.check_unchanged()
        if size != self.size:
            problem = f"has {size:,} bytes; its server tells {self.size:,}"
            raise FileChangedError(self.name, problem, "run again")

    def _fits(self) -> bool:
        """Return whether the folder may hold the file; else log that once for its server."""
        limit = config.file_cache_gb
        if (self.size or 0) + _TAIL_BYTES <= limit * _GIGABYTE:
            return True
        _log_too_large(str(config.file_cache), limit, _source(self.name))
        return False

    @abstractmethod
    def _kept_part(self, size: int, offset: int) -> bytes | None:
        """Return bytes of the file, if it is in the cache."""

    @override
    def read_at(self, size: int, offset: int) -> bytes:
        data = self._kept_part(size, offset)
        return self._file.read_at(size, offset) if data is None else data

    @override
    def part(self, size: int, offset: int) -> bytes:
        data = self._kept_part(size, offset)
        return self._file.part(size, offset) if data is None else data

    @override
    def check_unchanged(self) -> None:
        if not self._kept:
            self._file.check_unchanged()


class SmallCachedFile(_FileOfServer):
    """A file that is held in memory."""

    @cached_property
    def _known(self) -> bytes | None:
        """The file, if it is in the cache."""
        data = self._cache.find()
        self._kept = data is not None
        return data

    @override
    def _kept_part(self, size: int, offset: int) -> bytes | None:
        return None if self._known is None else self._known[offset : offset + size]

    @override
    def read_all(self, limit: int | None = None) -> bytes:
        if limit is not None and (self.size or 0) > limit:
            return self._file.read_all(limit)
        if self._known is None and not self._fits():
            return self._fetched()
        data = self._cache.content()
        self._kept = True
        return data

    @override
    def blocks(self) -> Iterator[bytes]:
        yield self.read_all()


class LargeCachedFile(_FileOfServer):
    """A file that does not fit into memory. It is read from the folder by ranges."""

    @cached_property
    def _known(self) -> _KeptFile | None:
        """The file, if it is in the cache."""
        file = self._cache.opened()
        self._kept = file is not None
        return file

    @override
    def _kept_part(self, size: int, offset: int) -> bytes | None:
        return None if self._known is None else self._known.read(size, offset)

    @override
    def read_all(self, limit: int | None = None) -> bytes:
        if self._known is not None or (limit is not None and (self.size or 0) > limit):
            return super().read_all(limit)
        return b"".join(self.blocks())

    @override
    def blocks(self) -> Iterator[bytes]:
        if self._known is not None or not self._fits():
            return super().blocks()
        return self._cache.keeping(self._whole_blocks())

    def _whole_blocks(self) -> Iterator[bytes]:
        size = 0
        for block in self._file.blocks():
            size += len(block)
            yield block
        self._check_whole(size)

    @override
    def close(self) -> None:
        file = self.__dict__.get("_known")
        if file is not None:
            file.close()


def _source(name: str) -> str:
    """Return the server or the shard of a file, without a password."""
    store, mark, _ = name.partition("#")
    if mark:
        return store
    scheme, mark, rest = name.partition("://")
    return f"{scheme}{mark}{rest.partition('/')[0].rpartition('@')[2]}"


@lru_cache(maxsize=256)  # one line for each
def _log_too_large(folder: str, limit: float, source: str) -> None:
    _LOGGER.warning(
        "a file of %s is fetched again in each read: it is larger than the folder %s may hold, "
        "file_cache_gb=%g GB. Let file_cache_gb be larger",
        source, folder, limit,
    )  # fmt: skip


@contextmanager
def opened(name: str, options: Mapping[str, Any] = MappingProxyType({})) -> Iterator[OpenedFile]:
    """Yield the file that a reference names, open inside the block.

    It is kept in the folder ``config.file_cache``, if one is set. Files of this machine, files
    without a version, and files of more than ``config.file_cache_gb`` are not kept.

    Args:
        name: Its path, URL, or store and name.
        options: The arguments of fsspec's file system, for a URL.

    Raises:
        FileError: There is no such file, or it cannot be read.
    """
    with open_file(name, options) as file:
        if not file.is_remote or not file.size or file.version is None or not config.file_cache:
            yield file
        elif file.size <= _MOST_IN_MEMORY:
            yield SmallCachedFile(file)
        else:
            with LargeCachedFile(file) as large:
                yield large
