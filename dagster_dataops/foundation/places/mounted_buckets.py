"""The folders of this machine in which the nodes of a bucket have their working copies."""

from pathlib import Path
from typing import Final

from dagster_dataops.foundation.places.bucket import BucketPrefix, StoreBucket

_BUCKETS: Final[dict[Path, StoreBucket]] = {}  # by their folders


def working_copy(prefix: BucketPrefix) -> Path:
    """Return the folder with the working copies of the nodes below a prefix of a bucket."""
    bucket = prefix.bucket
    _BUCKETS[bucket.folder] = bucket
    return bucket.folder / prefix.prefix if prefix.prefix else bucket.folder


def bucket_of(path: Path) -> tuple[StoreBucket, str] | None:
    """Return the bucket whose working copy holds ``path``, and the key of ``path`` in it.

    Returns:
        The bucket and the key; ``None`` for a path that is not in a working copy.
    """
    for folder in (path, *path.parents) if _BUCKETS else ():
        if folder in _BUCKETS:
            key = path.relative_to(folder).as_posix()
            return _BUCKETS[folder], "" if key == "." else key
    return None
