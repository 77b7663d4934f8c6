"""Fetch an object to a file, by ranges."""

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import xxhash

from dagster_dataops.datasets.durable_files import create_anew, make_folder, storage
from dagster_dataops.errors import ResultMissingError
from dagster_dataops.foundation.places.result_store import (
    ConflictError,
    ReadableStore,
    Status,
    Version,
)

RANGE_BYTES: Final = 8 << 20
_REPLACED: Final = "it was replaced or deleted while it was read; run again"
_AHEAD: Final = 3  # ranges that are read at once


def fetch(store: ReadableStore, key: str, target: Path, seen: Version | None = None) -> str:
    """Replace the file ``target`` by an object, atomically; return the digest of its content.

    Args:
        store: The store.
        key: The key of the object.
        target: The file.
        seen: The version that the object must have; ``None`` for the present one.

    Raises:
        ResultMissingError: There is no such object, or it was replaced while it was read.
        StorageError: It cannot be read.
    """
    status = store.status(key)
    if status is None:
        raise ResultMissingError(f"{store.url}/{key}", "the store has no such object")
    if seen not in {None, status.version}:
        raise ResultMissingError(f"{store.url}/{key}", _REPLACED)
    make_folder(target.parent)
    draft = target.with_name(f".{target.name}.{os.getpid()}.fetched")
    digest = xxhash.xxh3_128()
    try:
        with storage(target, "write the file"), os.fdopen(create_anew(draft), "wb") as file:
            for part in _parts(store, key, status):
                file.write(part)
                digest.update(part)
            file.close()
            draft.replace(target)
    except ConflictError:
        raise ResultMissingError(f"{store.url}/{key}", _REPLACED) from None
    finally:
        draft.unlink(missing_ok=True)
    return f"xxh3:{digest.hexdigest()}"


def _parts(store: ReadableStore, key: str, status: Status) -> Iterator[bytes]:
    """Yield the content of an object in order; the next ranges are read meanwhile."""

    def read(start: int) -> bytes:
        length = min(RANGE_BYTES, status.size - start)
        return store.read_range(key, start, length, status.version)

    starts = range(0, status.size, RANGE_BYTES)
    if len(starts) <= 1:
        yield from map(read, starts)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_AHEAD) as pool:
        begun = deque(pool.submit(read, start) for start in starts[:_AHEAD])
        for start in starts[_AHEAD:]:
            yield begun.popleft().result()
            begun.append(pool.submit(read, start))
        while begun:
            yield begun.popleft().result()
