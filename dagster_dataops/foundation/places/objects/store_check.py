"""Check that a store has what results need: it is tried, since stores ignore what they lack."""

import uuid
from contextlib import suppress
from typing import Final

from dagster_dataops.errors import StorageError
from dagster_dataops.foundation.places.result_store import ConflictError, ResultStore, Version

_OVERWRITES: Final = "so two runs could overwrite one another's results"


def lack_of(store: ResultStore, folder: str) -> str:
    """Return what a store lacks; empty if it has all.

    It must write on conditions, take uploads in parts, and read, list and delete what it holds.

    Args:
        store: The store.
        folder: A prefix of keys, to which the object of the check belongs.

    Raises:
        StorageError: It cannot be reached, does not know a request, or refuses a right.
    """
    key = f"{folder}/{uuid.uuid4().hex}"
    try:
        first = store.create(key, b"1")
    except ConflictError:
        return "it refuses to create an object that does not exist (If-None-Match)"
    try:
        lacks = _lack_of_create(store, key) or _lack_of_replace(store, key, first)
        if key not in store.names(folder) and not lacks:
            lacks = "its list lacks an object that was written just before"
        lacks = lacks or _lack_of_parts(store, key)
    except StorageError:
        with suppress(StorageError):
            store.remove([key])
        raise
    store.remove([key])
    if store.status(key) is not None and not lacks:
        lacks = f"it keeps an object that was deleted, {store.url}/{key}"
    return lacks


def _lack_of_create(store: ResultStore, key: str) -> str:
    with suppress(ConflictError):
        store.create(key, b"2")
        return f"it overwrites an object that is to be created (If-None-Match), {_OVERWRITES}"
    return ""


def _lack_of_replace(store: ResultStore, key: str, first: Version) -> str:
    try:
        second = store.replace(key, b"3", first)
    except ConflictError:
        return "it refuses to replace an object of the same version (If-Match)"
    with suppress(ConflictError):
        store.replace(key, b"4", first)
        return f"it replaces an object of another version (If-Match), {_OVERWRITES}"
    if second == first:
        return f"the version of an object does not change with its content, {_OVERWRITES}"
    same = store.read(key) == (b"3", second)
    return "" if same else "it does not return the object that was written last"


def _lack_of_parts(store: ResultStore, key: str) -> str:
    store.put(key, b"5", in_parts=True)
    stored = store.read(key)
    same = stored is not None and stored[0] == b"5"
    return "" if same else "it does not return the object that was uploaded in parts last"
