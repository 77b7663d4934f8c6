"""`Lazy`: a file of a store that is read when it is needed."""

import os
from collections.abc import Mapping, MutableMapping
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, Generic, Protocol, TypeVar

from dagster_dataops.errors import InputError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.files.remote import is_url
from dagster_dataops.training.filestores.folder_store import FolderStore
from dagster_dataops.training.filestores.source_info import SourceInfo, add_source_info
from dagster_dataops.training.filestores.store import FileStore
from dagster_dataops.training.filestores.store_opening import FOLDER_SCHEME, file_store

TAG: Final = "~lazy"
OTHER_DECODER: Final = "other"  # written of a store whose decoder is no `SampleDecoder`

_T = TypeVar("_T")


class StorePool(Protocol):
    """A pool that may have files of stores."""

    def read(self, store: FileStore, name: str, entry: object) -> tuple[bytes, SourceInfo]:
        """Return a file and its source."""
        ...


class Lazy(dict[str, list[str]], Generic[_T]):
    """A file of a store that is read by `get`, from a cache if it is there.

    It is a dict with the key ``~lazy``, so that a record that holds it can be written as JSON.
    `with_lazy_files` makes it of such a dict again, in any process.

    Args:
        store: The store.
        name: The name of the file, as the store's `full_name` returns it.
        pool: The pool that may have the file; ``None`` to read the store.
        entry: Keeps the file in the cache while it lives.
    """

    __slots__ = ("_data", "_entry", "_pool", "_store")

    def __init__(
        self,
        store: FileStore,
        name: str,
        pool: StorePool | None = None,
        entry: object = None,
    ) -> None:
        decoding = [] if store.decoding is None else [store.decoding]
        super().__init__({TAG: [address_of(store), name, *decoding]})
        self._store, self._pool, self._entry = store, pool, entry
        self._data: Any = None

    @property
    def name(self) -> str:
        """The name of the file."""
        return self[TAG][1]

    @override
    def get(self, sample: MutableMapping[str, Any] | None = None, /) -> Any:  # type: ignore[override]
        """Return the content of the file; the same each time.

        Args:
            sample: The sample that needs the file; its ``__sources__`` record the file, once.

        Raises:
            AuxFileMissingError: There is no such file.
            StreamSourceError: The file cannot be read.
        """
        if self._data is None:
            pool, store, name = self._pool, self._store, self.name
            content = store.read(name) if pool is None else pool.read(store, name, self._entry)
            self._data = store.value(name, content[0]), content[1]
            self._entry = None
        data, source = self._data
        if sample is not None:
            add_source_info(sample, source)
        return data

    @override
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self[TAG]))

    @override
    def __reduce__(self) -> Any:
        return Lazy, (self._store, self.name, self._pool)

    @override
    def __repr__(self) -> str:
        return f"Lazy({self[TAG][0]!r}, {self.name!r})"


def address_of(store: FileStore) -> str:
    """Return the text with which `file_store` opens a store again, without its decoder."""
    store = store.undecoded
    if not isinstance(store, FolderStore):
        return store.path
    return f"{FOLDER_SCHEME}{'+' if is_url(store.path) else '://'}{store.path}"


def store_at(address: str, decoding: str | None = None) -> FileStore:
    """Return the store at an address; see `address_of`.

    Raises:
        InputError: There is no such store.
    """
    return _opened_store(address, _state_of(address), decoding)


@lru_cache(maxsize=64)
def _opened_store(address: str, _state: tuple[int, ...], decoding: str | None) -> FileStore:
    """Return a store; one whose file or folder was replaced is opened again."""
    store = file_store(address)
    if decoding is None:
        return store
    if decoding == OTHER_DECODER:
        reason = (
            "a lazy file of it was written whose decoder is none of the package, so only bytes are "
            "known; decode it in the operator that reads it, and not in its store"
        )
        raise InputError(store.shown, reason)
    module = import_module("dagster_dataops.training.decoding.decode_store")  # it imports this one
    opened: FileStore = module.DecodeFileStore(
        store, decoder=module.SampleDecoder(image_decode=decoding)
    )
    return opened


def _state_of(address: str) -> tuple[int, ...]:
    """Return what differs if a store of this machine is replaced; nothing for a URL."""
    if is_url(address):
        return ()
    try:
        status = os.stat(address)  # noqa: PTH116 - a text
    except OSError:
        return ()  # `file_store` says what is wrong
    return status.st_size, status.st_mtime_ns, status.st_ino


def with_lazy_files(record: Mapping[str, Any]) -> Any:
    """Return a record whose values of the form ``{"~lazy": [store, name]}`` are lazy files.

    A record without any is returned itself.
    """
    files = {name: _lazy(value) for name, value in record.items() if _is_lazy(value)}
    return {**record, **files} if files else record


def _is_lazy(value: object) -> bool:
    return type(value) is dict and len(value) == 1 and TAG in value


def _lazy(value: dict[str, Any]) -> Lazy[Any]:
    address, name, *decoding = value[TAG]
    return Lazy(store_at(address, *decoding), name)
