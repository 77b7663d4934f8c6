"""The roots of results in which this process looks for the files that operators made.

A file is named by its content, so that any root with a file of that name has the right one.
"""

from pathlib import Path
from typing import Final

from dagster_dataops.configuration import config
from dagster_dataops.datasets.file_values.file_keeper import FILES
from dagster_dataops.foundation.places.bucket import BucketFile, Location
from dagster_dataops.foundation.places.root import Root

_LEVELS: Final = 8  # folders between a root and a result: a node, its group, a partition
_USED: Final[dict[Path, Root]] = {}


def use_root(root: Root) -> None:
    """Look for files below a root, before those that were used earlier."""
    _USED.pop(root.path, None)
    _USED[root.path] = root


def use_root_of(result: Location) -> None:
    """Look for files below the root of a result, if one of the folders above it has files."""
    if isinstance(result, BucketFile):
        *folders, _ = result.key.split("/")
        for depth in range(len(folders)):
            prefix = "/".join(folders[:depth])
            root = Root(result.bucket.folder / prefix, result.bucket)
            _USED.setdefault(root.path, root)
        return
    for folder in list(Path(result).absolute().parents)[:_LEVELS]:
        if (folder / FILES).is_dir():
            _USED.setdefault(folder, Root(folder))


def roots() -> list[Root]:
    """Return the roots, those that were used last first; the configured one is the last."""
    used = list(reversed(_USED.values()))
    configured = config.results_root()
    return used if configured.path in _USED else [*used, configured]
