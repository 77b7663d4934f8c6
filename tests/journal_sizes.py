"""The size of the journals of a node, read while the node runs."""

import os
from contextlib import suppress
from pathlib import Path


def size_of_journals(node: Path) -> int:
    """Return the bytes of all journals below a folder; files may come and go meanwhile."""
    size = 0
    # `os.walk` passes over folders that are removed while it lists them; `Path.rglob` fails.
    for folder, _, names in os.walk(node):
        if "journal" in names:
            with suppress(FileNotFoundError):
                size += Path(folder, "journal").stat().st_size
    return size
