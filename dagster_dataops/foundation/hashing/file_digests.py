"""Digests of the content of files, as in `JsonlDataset.fingerprint`."""

import stat
import time
from functools import lru_cache
from pathlib import Path
from typing import Final

import xxhash

from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import read_blocks, size_of

_BLOCK_BYTES: Final = 8 << 20


def content_digest(location: Location) -> str:
    """Return the digest of all bytes of a file; of an object on a store, its entity tag.

    Raises:
        InputError: The file cannot be read.
    """
    digest = xxhash.xxh3_128()
    try:
        with opened(location) as source:
            if not isinstance(source, int) and source.fingerprint is not None:
                return source.fingerprint
            for block in read_blocks(source, _BLOCK_BYTES):
                digest.update(block)
    except OSError as error:
        raise InputError(str(location), f"cannot be read: {error.strerror}") from error
    return f"xxh3:{digest.hexdigest()}"


def cached_digest(location: Location, state: tuple[int, ...]) -> str:
    """Return the digest of a file, cached for each state of the file.

    A file that was changed a moment ago is read again: another change may leave its state as it is.

    Args:
        location: The file.
        state: Inode, size, modification time and change time of the file.

    Raises:
        InputError: The file cannot be read.
    """
    if FileState(*state).hides_changes(time.time_ns()):
        return content_digest(location)
    return _cached_digest(location, state)


@lru_cache(maxsize=4096)  # more than a folder of a model has files
def _cached_digest(location: Location, state: tuple[int, ...]) -> str:  # noqa: ARG001 - part of the key
    return content_digest(location)


def has_content(path: Path, size_bytes: int, fingerprint: str | None) -> bool:
    """Return whether one file has exactly the given content; it is read if the size matches."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return False
        with opened(path) as source:  # of a compressed result, the size of the text
            same_size = size_of(source) == size_bytes
        return same_size and content_digest(path) == fingerprint
    except (OSError, InputError):
        return False
