"""`Root`: a folder of results, and the bucket of which it is a working copy."""

from pathlib import Path
from typing import NamedTuple

from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import CopiedFile, LocalFile, StoreBucket


class Root(NamedTuple):
    """A folder with the folders of nodes, such as the root of all results.

    Attributes:
        path: The folder on this machine.
        bucket: The bucket that stores the results, if the folder is a working copy; else ``None``.
    """

    path: Path
    bucket: StoreBucket | None = None

    def __truediv__(self, name: str) -> "Root":
        """Return a folder below."""
        return Root(self.path / name, self.bucket)

    def at(self, path: Path) -> "Root":
        """Return the folder at a path, with the bucket if the path is in its working copy."""
        bucket = self.bucket
        return Root(path, bucket if bucket and path.is_relative_to(bucket.folder) else None)

    def located(self, path: Path) -> LocalFile:
        """Return the location of a file or folder, with the bucket if it is in its working copy."""
        bucket = self.at(path).bucket
        return path if bucket is None else CopiedFile(bucket, path)

    @override
    def __str__(self) -> str:
        """Return the path or the URL, as users know it."""
        return str(self.located(self.path))
