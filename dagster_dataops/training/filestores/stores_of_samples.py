"""The file stores that cookers get: auxiliary ones by name, and the dataset of the sample."""

import os
from collections.abc import Mapping
from typing import Any

from dagster_dataops.errors import CookerError, InputError
from dagster_dataops.foundation.override import override
from dagster_dataops.training.filestores.source_info import SourceInfo
from dagster_dataops.training.filestores.store import FileStore, WrappingStore
from dagster_dataops.training.filestores.store_opening import absolute_store, file_store


class PrimaryStore(WrappingStore):
    """The dataset of a sample as a file store, in which ``.txt`` is a part of the sample itself."""

    def __init__(self, store: FileStore, sample: Mapping[str, Any]) -> None:
        super().__init__(store)
        self._sample = sample

    @override
    def full_name(self, name: str) -> str:
        return f"{self._sample['__key__']}{name}" if name.startswith(".") else name

    @override
    def read(self, name: str) -> tuple[bytes, SourceInfo]:
        data = self._sample.get(name[1:]) if name.startswith(".") else None
        if isinstance(data, bytes):
            full = self.full_name(name)
            shard = str(self._sample.get("__shard__", ""))
            return data, SourceInfo.of(self.path, full, shard, [full])
        return self.inner.read(self.full_name(name))

    @override
    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.full_name(name) in self.inner


def opened_stores(
    stores: Mapping[str, str | FileStore],
    place: str,
    storage_options: Mapping[str, Any] | None = None,
) -> dict[str, FileStore]:
    """Return opened auxiliary stores by name."""
    try:
        return {
            name: store
            if isinstance(store, FileStore)
            else file_store(store, storage_options=storage_options).named(name)
            for name, store in stores.items()
        }
    except InputError as error:
        raise CookerError(f"{place}: auxiliary store {error}") from error


def absolute_aux(
    stores: Mapping[str, str | os.PathLike[str] | FileStore] | None,
) -> dict[str, str | FileStore]:
    """Return auxiliary stores with relative paths made absolute."""
    absolute: dict[str, str | FileStore] = {}
    for name, store in (stores or {}).items():
        absolute[name] = store if isinstance(store, FileStore) else absolute_store(os.fspath(store))
    return absolute
