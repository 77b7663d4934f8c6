"""Digests of the content of files, as in `JsonlDataset.fingerprint`."""

import stat
import time
from functools import lru_cache
from pathlib import Path
from typing import Final

import xxhash

from dagster_dataops.byte_ranges import FileState, opened, read_blocks
from dagster_dataops.errors import InputError
from dagster_dataops.stores.object_file import ObjectFile

_BLOCK_BYTES: Final = 8 << 20


def content_digest(path: Path) -> str:
    """Return the digest of all bytes of a file; of an object on a store, its entity tag.

    Raises:
        InputError: The file cannot be read.
    """
    digest = xxhash.xxh3_128()
    try:
        with opened(path) as source:
            if isinstance(source, ObjectFile):
                return source.fingerprint
            for block in read_blocks(source, _BLOCK_BYTES):
                digest.update(block)
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error
    return f"xxh3:{digest.hexdigest()}"


def cached_digest(path: Path, state: tuple[int, ...]) -> str:
    """Return the digest of a file, cached for each state of the file.

    A file that was changed a moment ago is read again: another change may leave its state as it is.

    Args:
        path: The file.
        state: Inode, size, modification time and change time of the file.

    Raises:
        InputError: The file cannot be read.
    """
    if FileState(*state).hides_changes(time.time_ns()):
        return content_digest(path)
    return _cached_digest(path, state)


@lru_cache(maxsize=64)
def _cached_digest(path: Path, state: tuple[int, ...]) -> str:  # noqa: ARG001 - part of the key
    return content_digest(path)


def has_content(path: Path, size_bytes: int, fingerprint: str | None) -> bool:
    """Return whether one file has exactly the given content; it is read if the size matches.

    Args:
        path: The file; it may be missing.
        size_bytes: The expected size.
        fingerprint: The expected digest.
    """
    try:
        status = path.stat()
        same_size = stat.S_ISREG(status.st_mode) and status.st_size == size_bytes
        return same_size and content_digest(path) == fingerprint
    except (OSError, InputError):
        return False
