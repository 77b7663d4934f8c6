"""Working copies: the folders of this machine with copies of the nodes of a bucket."""

from pathlib import Path
from typing import Final

from dagster_dataops.places.bucket import COPIES, BucketFile, BucketPrefix, Location, StoreBucket

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


def shown_place(location: Location) -> str:
    """Return a location as users know it: the URL of an object, or of a file in a working copy."""
    if isinstance(location, BucketFile):
        return str(location)
    found = bucket_of(location)
    if found is None:
        return str(location)
    return f"{found[0].url}/{found[1].removeprefix(f'{COPIES}/')}"
