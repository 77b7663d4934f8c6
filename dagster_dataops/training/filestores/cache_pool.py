"""`CachePool`: read files of stores ahead, and keep them on a local disk.

A cache is only a cache: if it is full, deleted, damaged or closed, the store is read instead.
"""

import functools
import logging
import os
import threading
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, TypeVar

import xxhash

from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.url_forms import check_local
from dagster_dataops.training.filestores.cache_folder import ArrivingFile, CacheFolder, KeptFile
from dagster_dataops.training.filestores.kept_values import KeptValue
from dagster_dataops.training.filestores.lazy_files import Lazy, address_of
from dagster_dataops.training.filestores.source_info import SourceInfo
from dagster_dataops.training.filestores.store import FileStore

_LOGGER: Final = logging.getLogger(__name__)
_GIGABYTE: Final = 1024**3
_NOBODY: Final = 0  # no process
_WRITTEN: Final = ".written-"  # the name of a list of files to delete

T = TypeVar("T")
Read: TypeAlias = tuple[bytes, SourceInfo]


class CachePool(ABC):
    """Reads files of stores, at once or before they are needed."""

    def get(
        self, store: FileStore, name: str, sample: MutableMapping[str, Any] | None = None
    ) -> bytes:
        """Return a file at once, as `FileStore.get` does; it is not kept."""
        return store.get(name, sample)

    @abstractmethod
    def get_lazy(self, store: FileStore, name: str) -> Lazy[bytes]:
        """Return a file that is read when its `Lazy.get` is called, or before.

        Args:
            store: The store.
            name: The name of the file in it.
        """

    def to_cache(self, data: T, name: str) -> KeptValue[T]:
        """Return a value that was made, such as a decoded image, in a form that needs no memory.

        Its ``get()`` returns the value, as that of a lazy file does. Workers can send it to the
        training process. See `KeptValue`.

        Args:
            data: The value: bytes, or any object that can be pickled.
            name: A name for messages.
        """
        return KeptValue(data, name, self._parent_of_values())

    def _parent_of_values(self) -> Path | None:
        """Return the cache folder for values of `to_cache`; ``None`` to keep them in memory."""
        return None

    def read(self, store: FileStore, name: str, entry: object) -> Read:  # noqa: ARG002
        """Return a file and its source; called by `Lazy.get`."""
        return store.read(name)

    def close(self) -> None:  # noqa: B027 - a pool without threads needs none
        """Stop reading ahead. Lazy files can still be read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NoCachePool(CachePool):
    """Reads a lazy file when it is needed, and keeps nothing."""

    @override
    def get_lazy(self, store: FileStore, name: str) -> Lazy[bytes]:
        """Return a file that is read by the first `Lazy.get`."""
        return Lazy(store, store.full_name(name))


class _NeededFile:
    """A file that lazy files of this process need; dropped with the last of them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.reading: Future[None] | None = None


class FileStoreCachePool(CachePool):
    """Reads lazy files ahead in threads, and keeps them in a folder of a local disk.

    All pools of a machine with the same folder share it, in any process. Files that were used
    least recently are deleted when there is no room. A pool can be pickled; a copy, and a process
    that was forked, starts its own threads.

    Args:
        parent_cache_dir: The folder. By default it is in the cache folder of the user.
        num_workers: The number of threads; at least 1.
        max_cache_size_gbytes: The largest size of all files.
        max_cache_count: The largest number of files.
        method: ``raw``. Energon's ``pickle`` is accepted and means the same.
        keep: Whether files stay for later runs. Otherwise those that the pool and its copies, as
            in worker processes, wrote are deleted by `close`, and when the pool or its process
            ends.

    Raises:
        ConfigurationError: An argument is invalid.
    """

    def __init__(
        self,
        *,
        parent_cache_dir: str | os.PathLike[str] | None = None,
        num_workers: int = 8,
        max_cache_size_gbytes: float = 1024,
        max_cache_count: int = 10_000_000,
        method: str = "raw",
        keep: bool = True,
    ) -> None:
        check_local("parent_cache_dir", parent_cache_dir)
        if type(num_workers) is not int or num_workers < 1:
            raise ConfigurationError("num_workers", num_workers, "an integer of at least 1")
        if not max_cache_size_gbytes >= 0 or max_cache_count < 0:
            limits = (max_cache_size_gbytes, max_cache_count)
            raise ConfigurationError("limits of the cache", limits, "numbers of at least 0")
        if method not in {"raw", "pickle"}:
            raise ConfigurationError("method", method, "'raw' or 'pickle'")
        self._parent = Path(parent_cache_dir or _default_folder()).expanduser().absolute()
        self._limits = int(max_cache_size_gbytes * _GIGABYTE), max_cache_count
        self._num_workers, self._keep = num_workers, keep
        self._written = self._parent / f"{_WRITTEN}{uuid.uuid4().hex}"
        self._owner = os.getpid()
        self._reset()
        if not keep:
            weakref.finalize(self, _delete_written, self._written, self._folder, self._owner)

    def _reset(self) -> None:
        """Start without threads, and without lazy files of another process."""
        self._pid = os.getpid()
        self._folder = CacheFolder(self._parent, *self._limits)
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._entries: weakref.WeakValueDictionary[str, _NeededFile] = weakref.WeakValueDictionary()
        self._digests: weakref.WeakKeyDictionary[FileStore, str] = weakref.WeakKeyDictionary()
        self._closed = self._warned = False

    @override
    def get_lazy(self, store: FileStore, name: str) -> Lazy[bytes]:
        """Return a file that a thread reads ahead, unless it is in the cache."""
        if self._pid != os.getpid():
            self._reset()
        name = store.full_name(name)
        path = self._path(store, name)
        with self._lock:
            entry = self._entries.get(path)
            if entry is None:
                entry = self._entries[path] = _NeededFile(path)
                if not self._closed and not os.path.exists(path):  # noqa: PTH110 - a text
                    entry.reading = self._executor().submit(self._read_ahead, store, name, path)
        return Lazy(store, name, self, entry)

    @override
    def read(self, store: FileStore, name: str, entry: object) -> Read:
        """Return a file and its source, from the cache if it is there."""
        if self._pid != os.getpid():
            self._reset()
        reading = entry.reading if isinstance(entry, _NeededFile) else None
        if reading is not None and not reading.cancel():
            reading.exception()  # waits; a failure is raised again by the store
        path = self._path(store, name)
        return self._folder.load(path) or self._fill(store, name, path)

    def find(self, store: FileStore, name: str) -> Read | None:
        """Return a file and its source if the cache has it; the store is not read."""
        return self._folder.load(self._path(store, name))

    def find_file(self, store: FileStore, name: str) -> KeptFile | None:
        """Return a file for reads by ranges if the cache has it; the caller closes it."""
        return self._folder.opened(self._path(store, name))

    def keeping(self, store: FileStore, name: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the blocks of a file, and keep the file when the last one was taken.

        If the disk refuses the file, the blocks are still yielded.

        Args:
            store: The store of the file.
            name: The name of the file in it.
            blocks: The content in order. They raise an error if the file is not whole.
        """
        path = self._path(store, name)
        file = self._tried(lambda: self._folder.arriving(path))
        try:
            for block in blocks:
                if file is not None and not self._tried(partial(file.write, block)):
                    file.end()
                    file = None
                yield block
            if file is not None:
                source = SourceInfo.of(store.path, name, store.path, [name])
                self._tried(partial(self._keep_arrived, path, file, source))
        finally:
            if file is not None:
                file.end()

    def _keep_arrived(self, path: str, file: ArrivingFile, source: SourceInfo) -> None:
        if self._folder.keep(path, file, source, self._pending):
            self._note_written(path)

    @override
    def close(self) -> None:
        """Stop reading ahead. Files stay in the cache, unless ``keep`` is false."""
        self._closed = True
        threads, self._threads = self._threads, None
        if threads is not None and self._pid == os.getpid():
            threads.shutdown(cancel_futures=True)
        if not self._keep:
            _delete_written(self._written, self._folder, self._owner)

    @override
    def _parent_of_values(self) -> Path:
        return self._parent

    def _executor(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._num_workers, "dataops-cache")
        return self._threads

    def _path(self, store: FileStore, name: str) -> str:
        digest = self._digests.get(store)
        if digest is None:
            text = f"{address_of(store)}\0{store.version()}"
            digest = self._digests[store] = xxhash.xxh3_128_hexdigest(text.encode())
        return self._folder.path(digest, name)

    def _read_ahead(self, store: FileStore, name: str, path: str) -> None:
        if not os.path.exists(path):  # noqa: PTH110 - a text
            self._fill(store, name, path)

    def _fill(self, store: FileStore, name: str, path: str) -> Read:
        """Read a file and keep it."""
        data, source = store.read(name)
        self._tried(partial(self._save, path, data, source))
        return data, source

    def _save(self, path: str, data: bytes, source: SourceInfo) -> None:
        if self._folder.save(path, data, source, self._pending):
            self._note_written(path)

    def _note_written(self, path: str) -> None:
        if not self._keep:
            with self._written.open("a") as written:
                written.write(f"{path}\n")

    def _tried(self, write: Callable[[], T]) -> T | None:
        """Return the result of writing to the folder; ``None``, and a warning, if it fails."""
        try:
            return write()
        except OSError as error:
            if not self._warned:
                self._warned = True
                _LOGGER.warning("the cache %s cannot be written: %s", self._parent, error)
            return None

    def _pending(self) -> set[str]:
        return set(self._entries)

    @override
    def __reduce__(self) -> Any:
        size, count = self._limits
        options = (str(self._parent), self._num_workers, size / _GIGABYTE, count)
        return _pool, (*options, None if self._keep else str(self._written))

    @override
    def __repr__(self) -> str:
        return f"FileStoreCachePool(parent_cache_dir={str(self._parent)!r})"


@functools.cache  # the copies of a process are one pool
def _pool(
    folder: str, workers: int, size: float, count: int, written: str | None
) -> FileStoreCachePool:
    """Return a copy of a pool; ``written`` lists the files that it and its copies wrote."""
    pool = FileStoreCachePool(
        parent_cache_dir=folder,
        num_workers=workers,
        max_cache_size_gbytes=size,
        max_cache_count=count,
    )
    if written is not None:  # the pool that was copied deletes the files
        pool._keep, pool._written, pool._owner = False, Path(written), _NOBODY  # noqa: SLF001
    return pool


def _delete_written(written: Path, folder: CacheFolder, owner: int) -> None:
    """Delete the files that a pool and its copies wrote; in the process of the pool alone."""
    if owner != os.getpid():
        return
    try:
        paths = written.read_text().splitlines()
    except OSError:
        return
    for path in paths:
        folder.delete(path)
    written.unlink(missing_ok=True)


def _default_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "dagster_dataops", "files")
