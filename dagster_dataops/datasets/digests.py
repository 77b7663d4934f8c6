"""The digest of a file's bytes, as `JsonlDataset.fingerprint` holds it."""

import os
from pathlib import Path

import xxhash

from dagster_dataops.datasets.durable_files import COPY_BYTES
from dagster_dataops.errors import InputError


def content_digest(path: Path) -> str:
    """Return the digest of all bytes of a file; it takes hardly longer than reading them.

    Raises:
        InputError: It cannot be read.
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
    """Whether a file has exactly these bytes; read only if it has so many.

    Args:
        path: The file; it may be missing.
        size_bytes: How many bytes they are.
        fingerprint: Their digest.
    """
    try:
        return path.stat().st_size == size_bytes and content_digest(path) == fingerprint
    except (OSError, InputError):
        return False
