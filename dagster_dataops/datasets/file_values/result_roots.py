"""The roots of results in which this process looks for the files that operators made.

A file is named by its content, so that any root with a file of that name has the right one.
"""

import os
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from dagster_dataops.configuration import config
from dagster_dataops.datasets.file_values.file_keeper import FILES, FileKeeper
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.places.bucket import (
    BucketFile,
    Location,
    StoreBucket,
    prefix_of,
)
from dagster_dataops.foundation.places.root import Root

_MOST: Final = 64  # roots; a process may use a new one for each run
_LEVELS: Final = 8  # folders between a root and a result: a node, its group, a partition
_USED: Final[dict[Path, Root]] = {}
_USING: Final = threading.Lock()


def use_root(root: Root) -> None:
    """Look for files below a root, before those that were used earlier."""
    with _USING:
        _USED.pop(root.path, None)
        _USED[root.path] = root
        while len(_USED) > _MOST:
            del _USED[next(iter(_USED))]  # used longest ago


def use_roots_above(result: Location) -> None:
    """Look for files below the folders above a result.

    Folders of this machine without the folder for files are left out.
    """
    if isinstance(result, BucketFile):
        *folders, _ = result.key.split("/")
        for depth in range(len(folders)):
            prefix = "/".join(folders[:depth])
            _use_also(Root(result.bucket.folder / prefix, result.bucket))
        return
    folder = os.path.abspath(result)  # noqa: PTH100 - each node does this
    for _ in range(min(_LEVELS, folder.count("/"))):
        folder = os.path.dirname(folder)  # noqa: PTH120
        if os.path.isdir(f"{folder}/{FILES}"):  # noqa: PTH112
            _use_also(Root(Path(folder)))


def _use_also(root: Root) -> None:
    use_root(_USED.get(root.path, root))


def facts_of_keeper(keeper: FileKeeper | None) -> tuple[Any, ...]:
    """Describe a keeper for other processes of the run, as JSON values; see `keeper_in_run`."""
    if keeper is None:
        return ()
    others = (root for root in roots() if root.path != keeper.root.path)
    cache = config.file_cache
    settings = {
        "url_options": dict(config.logins()),
        "file_cache": None if cache is None else str(cache),
        "file_cache_gb": str(config.file_cache_gb),  # JSON has no inf
    }
    return settings, *map(_facts_of, (keeper.root, *others))


def keeper_in_run(facts: Sequence[Any]) -> FileKeeper | None:
    """Take the roots and the file settings of a run, and return its keeper.

    Args:
        facts: The values of `facts_of_keeper`; empty for no keeper.
    """
    if not facts:
        return None
    settings, *places = facts
    config.take_settings_of_run(settings)
    roots_of_run = [_root_of(*place) for place in places]
    for root in reversed(roots_of_run):
        use_root(root)
    return FileKeeper(roots_of_run[0])


def _facts_of(root: Root) -> tuple[Any, ...]:
    bucket = root.bucket
    if bucket is None:
        return (str(root.path),)
    return str(root.path), bucket.url, str(bucket.folder), dict(bucket.options)


def _root_of(path: str, url: str = "", folder: str = "", options: Any = None) -> Root:
    bucket = StoreBucket(url, Path(folder), options, reached=True) if url else None
    return Root(Path(path), bucket)


def object_at(url: str) -> BucketFile | None:
    """Return the object of a URL on a store for whose roots or inputs there are options.

    Returns:
        The object, with these options; ``None`` for a URL of another store.
    """
    buckets = [root.bucket for root in roots() if root.bucket is not None and root.bucket.options]
    buckets.sort(key=lambda other: not url.startswith(f"{other.url}/"))  # its own bucket first
    for bucket in buckets:
        prefix = prefix_of("file", url, bucket.options, partial(_scratch_of, bucket))
        if (
            prefix is not None
            and _scheme(prefix.bucket.url) == _scheme(bucket.url)
            and prefix.prefix
        ):
            known = bucket if prefix.bucket.url == bucket.url else prefix.bucket
            return BucketFile(known, prefix.prefix)
    return None


def _scratch_of(bucket: StoreBucket) -> Path:
    return bucket.folder.parent.parent


def _scheme(url: str) -> str:
    return url.partition("://")[0]


def roots() -> list[Root]:
    """Return the roots, those that were used last first; the configured one is the last."""
    with _USING:
        used = list(reversed(_USED.values()))
    try:
        configured = config.results_root()
    except ConfigurationError:  # that of this run is another one
        return used
    return used if configured.path in _USED else [*used, configured]
