"""`CachedFile`: a file of a server that is fetched once and kept in a folder of this machine."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Protocol

from typing_extensions import override

from dagster_dataops.configuration import config
from dagster_dataops.datasets.file_values.opened_file import OpenedFile, open_file
from dagster_dataops.errors import FileChangedError
from dagster_dataops.foundation.parts import function_of_part

_MOST_BYTES: Final = 256 << 20  # of a file that is kept: it is held in memory


class _Cache(Protocol):
    """A file in a cache."""

    def find(self) -> bytes | None:
        """Return the file, if it is in the cache."""

    def content(self) -> bytes:
        """Return the file, from the cache if it is there; else it is read and kept."""


class CachedFile(OpenedFile):
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
        self._file.check_unchanged()
        if len(data) != self.size:
            problem = f"has {len(data):,} bytes; its server tells {self.size:,}"
            raise FileChangedError(self.name, problem, "run again")
        return data

    @cached_property
    def _known(self) -> bytes | None:
        """The file, if it is in the cache."""
        data = self._cache.find()
        self._kept = data is not None
        return data

    @override
    def read_at(self, size: int, offset: int) -> bytes:
        data = self._known
        return self._file.read_at(size, offset) if data is None else data[offset : offset + size]

    @override
    def part(self, size: int, offset: int) -> bytes:
        data = self._known
        return self._file.part(size, offset) if data is None else data[offset : offset + size]

    @override
    def read_all(self, limit: int | None = None) -> bytes:
        if limit is not None and (self.size or 0) > limit:
            return self._file.read_all(limit)
        data = self._cache.content()
        self._kept = True
        return data

    @override
    def blocks(self) -> Iterator[bytes]:
        yield self.read_all()

    @override
    def check_unchanged(self) -> None:
        if not self._kept:
            self._file.check_unchanged()


@contextmanager
def opened(name: str, options: Mapping[str, Any] = MappingProxyType({})) -> Iterator[OpenedFile]:
    """Yield the file that a reference names, open inside the block.

    It is kept in the folder ``config.file_cache``, if one is set. Files of this machine, files
    without a version, and files of more than 256 MiB are not kept.

    Args:
        name: Its path, URL, or store and name.
        options: The arguments of fsspec's file system, for a URL.

    Raises:
        FileError: There is no such file, or it cannot be read.
    """
    with open_file(name, options) as file:
        keeps = file.is_remote and file.version is not None and config.file_cache is not None
        yield CachedFile(file) if keeps and 0 < (file.size or 0) <= _MOST_BYTES else file
