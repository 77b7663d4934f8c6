"""The digest of a file's content, as in `JsonlDataset.fingerprint`."""

import os
from pathlib import Path

import xxhash

from dagster_dataops.datasets.durable_files import COPY_BYTES
from dagster_dataops.errors import InputError


def content_digest(path: Path) -> str:
    """Return the digest of all bytes of a file.

    Raises:
        InputError: The file cannot be read.
    """
    digest = xxhash.xxh3_128()
    try:
        with path.open("rb", buffering=0) as file:
            while block := os.read(file.fileno(), COPY_BYTES):
                digest.update(block)
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error
    return f"xxh3:{digest.hexdigest()}"


def holds(path: Path, size_bytes: int, fingerprint: str | None) -> bool:
    """Return whether a file has exactly the given content. It is read only if the size matches.

    Args:
        path: The file; it may be missing.
        size_bytes: The expected size.
        fingerprint: The expected digest.
    """
    try:
        return path.stat().st_size == size_bytes and content_digest(path) == fingerprint
    except (OSError, InputError):
        return False
