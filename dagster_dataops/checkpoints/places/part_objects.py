"""Objects with parts of whole-dataset steps: made whole or not at all, and read by ranges."""

from collections.abc import Iterator
from typing import Final

from dagster_dataops.foundation.places.bucket import BucketFile
from dagster_dataops.foundation.places.open_stores import reading
from dagster_dataops.foundation.places.result_store import ConflictError

_MOST_AT_ONCE: Final = 8 << 20  # bytes that are sent by one request


def put(file: BucketFile, content: Iterator[bytes]) -> None:
    """Make an object, by one request if it is small; an error leaves none.

    Raises:
        StorageError: The store cannot be reached.
    """
    store, block = reading(file.bucket), bytearray()
    for piece in content:
        block += piece
        if len(block) >= _MOST_AT_ONCE:
            break
    else:
        store.put(file.key, bytes(block))
        return
    upload = store.begin_upload(file.key, _MOST_AT_ONCE)
    try:
        upload.write(bytes(block))
        for piece in content:
            upload.write(piece)
        upload.finish()
    except BaseException:
        upload.abort()
        raise


def size(file: BucketFile) -> int | None:
    """Return the size of an object; ``None`` if there is none.

    Raises:
        StorageError: The store cannot be reached.
    """
    status = reading(file.bucket).status(file.key)
    return None if status is None else status.size


def read(file: BucketFile, start: int, length: int) -> bytes | None:
    """Return bytes of an object; ``None`` if there is no such object.

    Raises:
        StorageError: The store cannot be reached.
    """
    try:
        return reading(file.bucket).read_range(file.key, start, length, None)
    except ConflictError:
        return None


def remove(file: BucketFile) -> None:
    """Delete an object, if it is there.

    Raises:
        StorageError: The store refuses.
    """
    reading(file.bucket).remove([file.key])
