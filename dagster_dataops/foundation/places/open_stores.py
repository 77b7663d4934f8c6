"""The stores that this process has opened, by the folders of their copies."""

import threading
from pathlib import Path
from typing import Final

from dagster_dataops.foundation.places.bucket import StoreBucket
from dagster_dataops.foundation.places.result_store import ResultStore

_OPEN: Final[dict[Path, tuple[StoreBucket, ResultStore]]] = {}
_READING: Final[dict[Path, tuple[StoreBucket, ResultStore]]] = {}  # not checked
_OPENING: Final = threading.Lock()


def writing(bucket: StoreBucket) -> ResultStore:
    """Return the store of a bucket, to publish results in it.

    Raises:
        MissingExtraError: The package for object stores is not installed.
        StoreRefusedError: The store cannot be reached, or lacks a feature that results need.
    """
    return _open(bucket, read_only=False)


def reading(bucket: StoreBucket) -> ResultStore:
    """Return the store of a bucket, to read from it: without a check of its conditional writes.

    Raises:
        MissingExtraError: The package for object stores is not installed.
        StoreRefusedError: The store cannot be reached.
    """
    return _open(bucket, read_only=True)


def _open(bucket: StoreBucket, *, read_only: bool) -> ResultStore:
    with _OPENING:
        for known in (_OPEN, _READING) if read_only else (_OPEN,):
            opened = known.get(bucket.folder)
            if opened is not None and opened[0] == bucket:
                return opened[1]
        from dagster_dataops.foundation.places.object_store import open_store

        store = open_store(bucket, read_only=read_only)
        (_READING if read_only else _OPEN)[bucket.folder] = bucket, store
        return store


def use(bucket: StoreBucket, store: ResultStore) -> None:
    """Use an open store for a bucket."""
    _OPEN[bucket.folder] = (bucket, store)
