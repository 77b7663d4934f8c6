"""Where an asset's files are: the folder of its key, and of its partition, below the root."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from dagster_dataops.checkpoints.manifest import NodeFolder

_SAFE: Final = " @+=,"


def folder_of(root: Path, key: Sequence[str], partition: str | None = None) -> NodeFolder:
    """Return the node folder of an asset; no part of its key can lead out of ``root``."""
    parts = [safe_part(part) for part in key]
    path = root.joinpath(*parts)
    if partition is not None:
        path = path / "partitions" / safe_part(partition)
    return NodeFolder(path, parts[-1])


def safe_part(part: str) -> str:
    """Return ``part`` as the name of one folder: slashes and leading dots are escaped."""
    escaped = quote(part, safe=_SAFE)
    return f"%2E{escaped[1:]}" if escaped.startswith(".") else escaped
