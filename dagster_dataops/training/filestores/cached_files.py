"""Files of records in a cache pool: each is the only file of a store."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

from dagster_dataops.configuration import config
from dagster_dataops.errors import StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.files.remote import file_details, identity_of, is_url
from dagster_dataops.training.filestores.cache_folder import KeptFile
from dagster_dataops.training.filestores.cache_pool import FileStoreCachePool
from dagster_dataops.training.filestores.lazy_files import store_at
from dagster_dataops.training.filestores.source_info import SourceInfo
from dagster_dataops.training.filestores.store import FileStore, FileWindow

_LARGEST: Final = 1 << 20  # GB; a cache without a limit has one that can be counted


class CacheableFile(FileStore):
    """A file for a cache pool, with a version that changes if it is replaced.

    ``fetch`` returns its content from its server.
    """

    def __init__(
        self, pool: FileStoreCachePool, name: str, version: str, fetch: Callable[[], bytes]
    ) -> None:
        self.path, self._pool, self._version, self._fetch = name, pool, version, fetch

    def find(self) -> bytes | None:
        """Return the content if the cache has it."""
        entry = self._pool.find(self, self.path)
        return None if entry is None else entry[0]

    @override
    def read(self, name: str = "") -> tuple[bytes, SourceInfo]:
        return self._fetch(), SourceInfo.of(self.path, name, self.path, [name])

    def content(self) -> bytes:
        """Return the content, from the cache if it is there; else it is fetched and kept."""
        return self._pool.read(self, self.path, None)[0]

    def opened(self) -> KeptFile | None:
        """Return the file for reads by ranges if the cache has it; the caller closes it."""
        return self._pool.find_file(self, self.path)

    def keeping(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the blocks of the file, and keep it; see `FileStoreCachePool.keeping`."""
        return self._pool.keeping(self, self.path, blocks)

    @override
    def names(self) -> Iterator[str]:
        yield self.path

    @override
    def version(self) -> str:
        return self._version


def cached_file(
    folder: str, gigabytes: float, name: str, version: str, fetch: Callable[[], bytes]
) -> CacheableFile:
    """Return a file that is kept in the cache of a folder, which has at most so many gigabytes."""
    return CacheableFile(_pool(folder, gigabytes), name, version, fetch)


@lru_cache(maxsize=16)
def _pool(folder: str, gigabytes: float) -> FileStoreCachePool:
    size = min(gigabytes, _LARGEST)
    return FileStoreCachePool(parent_cache_dir=folder, max_cache_size_gbytes=size)


def _has_version(address: str) -> bool:
    """Return whether a store is a file of a server, which reports a version of it."""
    try:
        return is_url(address) and identity_of(file_details(address, {})) is not None
    except StreamSourceError:
        return False


def file_of_store(address: str, name: str) -> FileWindow | str | bytes:
    """Return a file in a store: where it can be read by ranges, else its content.

    The content of a file of a server is kept in the folder ``config.file_cache``, if the server
    reports a version of the store.

    Args:
        address: The path or URL of the store; see `file_store`.
        name: The name of the file in it.

    Returns:
        Its own path or URL, or its window in a shard, or its content.

    Raises:
        AuxFileMissingError: There is no such file.
        InputError: There is no such store.
        PathEscapeError: The name leaves the store.
    """
    store = store_at(address)
    place = store.place(name)
    if place is not None:
        return place
    folder = config.file_cache
    if folder is None or not _has_version(address):
        return store.get(name)
    return _pool(str(folder), config.file_cache_gb).read(store, store.full_name(name), None)[0]
