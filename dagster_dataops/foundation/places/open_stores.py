"""The stores that this process has opened, by the folders of their copies."""

import threading
from pathlib import Path
from typing import Final

from dagster_dataops.foundation.places.bucket import StoreBucket
from dagster_dataops.foundation.places.result_store import ResultStore

_OPEN: Final[dict[Path, tuple[StoreBucket, ResultStore]]] = {}
_READING: Final[dict[Path, tuple[StoreBucket, ResultStore]]] = {}  # not checked
_OPENING: Final = threading.Lock()


def writing(bucket: StoreBucket, below: str = "") -> ResultStore:
    """Return the store of a bucket, to publish results in it.

    Args:
        bucket: The bucket.
        below: A prefix of the keys that are written; the first use of a bucket is a check there.

    Raises:
        MissingExtraError: The package for object stores is not installed.
        StoreRefusedError: The store cannot be reached, lacks a feature that results need, or
            refuses a right.
    """
    return _open(bucket, below)


def reading(bucket: StoreBucket) -> ResultStore:
    """Return the store of a bucket, to read from it: without a check of its conditional writes.

    Raises:
        MissingExtraError: The package for object stores is not installed.
        StoreRefusedError: The store cannot be reached.
    """
    return _open(bucket, None)


def _open(bucket: StoreBucket, below: str | None) -> ResultStore:
    read_only = below is None
    with _OPENING:
        for known in (_OPEN, _READING) if read_only else (_OPEN,):
            opened = known.get(bucket.folder)
            if opened is not None and opened[0] == bucket:
                return opened[1]
        from dagster_dataops.foundation.places.objects.object_store import open_store

        store = open_store(bucket, written_below=below)
        (_READING if read_only else _OPEN)[bucket.folder] = bucket, store
        return store


def use(bucket: StoreBucket, store: ResultStore) -> None:
    """Use an open store for a bucket."""
    _OPEN[bucket.folder] = (bucket, store)
