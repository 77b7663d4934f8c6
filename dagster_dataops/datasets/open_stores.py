"""The stores that this process has opened, by the folders of their working copies."""

import threading
from pathlib import Path
from typing import Final

from dagster_dataops.configuration import Bucket, bucket_of
from dagster_dataops.datasets.result_store import ResultStore

_OPEN: Final[dict[Path, tuple[Bucket, ResultStore]]] = {}
_OPENING: Final = threading.Lock()


def store_of(path: Path) -> tuple[ResultStore, str] | None:
    """Return the store whose working copy holds ``path``, and the key of ``path`` in it.

    Returns:
        The store and the key; ``None`` for a path of a local disk.

    Raises:
        MissingExtraError: The package for object stores is not installed.
        StoreRefusedError: The store cannot be reached, or lacks what results need.
    """
    found = bucket_of(path)
    if found is None:
        return None
    bucket, key = found
    opened, store = _OPEN.get(bucket.folder, (None, None))
    if store is not None and opened == bucket:
        return store, key
    with _OPENING:
        from dagster_dataops.datasets.object_store import open_store

        store = open_store(bucket)
    use(bucket, store)
    return store, key


def readable_store_of(path: Path) -> tuple[ResultStore, str] | None:
    """Return the same, for a store that is only read; nothing is tried on it."""
    found = bucket_of(path)
    if found is None:
        return None
    bucket, key = found
    opened, store = _OPEN.get(bucket.folder, (None, None))
    if store is not None and opened == bucket:
        return store, key
    from dagster_dataops.datasets.object_store import open_store

    return open_store(bucket, read_only=True), key


def use(bucket: Bucket, store: ResultStore) -> None:
    """Use an open store for a bucket."""
    _OPEN[bucket.folder] = (bucket, store)
