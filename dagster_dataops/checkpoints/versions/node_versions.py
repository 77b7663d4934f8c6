"""`NodeVersions`: the earlier results of a node, where its files are: in a folder or a bucket."""

from collections.abc import Iterable
from typing import Protocol

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.versions.folder_versions import FolderVersions
from dagster_dataops.checkpoints.versions.version import CURRENT, ResultVersion
from dagster_dataops.errors import VersionMissingError
from dagster_dataops.foundation.places.bucket import LocalFile


class NodeVersions(Protocol):
    """The earlier results of a node, by numbers that rise. What changes them claims the node."""

    def numbers(self) -> list[int]:
        """Return the numbers of the versions, the oldest first."""

    def manifest(self, number: int) -> bytes:
        """Return the manifest of a version as it was published; empty if it is gone."""

    def manifest_file(self, number: int) -> LocalFile:
        """Return the file with the manifest of a version, for errors."""

    def get(self, number: int) -> ResultVersion:
        """Return a version. Its files are fetched when its folder is read.

        Raises:
            VersionMissingError: It is gone or damaged.
        """

    def keep(self) -> bool:
        """Keep the result in place as the newest version; return whether a file was copied.

        Raises:
            StorageError: The disk or the store refuses. No version was made.
        """

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove versions."""


def versions_at(folder: NodeFolder) -> NodeVersions:
    """Return the earlier results of the node in a folder."""
    if folder.bucket is None:
        return FolderVersions(folder)
    from dagster_dataops.checkpoints.versions.bucket_versions import BucketVersions

    return BucketVersions(folder, folder.bucket)


def check_versions(folder: NodeFolder) -> None:
    """Check that no version of the result of a node is of a newer version of this package.

    Raises:
        NewerVersionError: One is.
        StorageError: The disk or the store refuses.
    """
    versions = versions_at(folder)
    for number in versions.numbers():
        Manifest.parse(versions.manifest(number), versions.manifest_file(number))


def version_named(folder: NodeFolder, name: str) -> ResultVersion:
    """Return the result of a node with a name: ``current``, or the number of a version.

    Raises:
        VersionMissingError: There is none.
    """
    if name == CURRENT:
        folder.place.refresh(whole=False)
        return ResultVersion.of(CURRENT, folder, folder.place.refresh)
    versions = versions_at(folder)
    numbers = versions.numbers()
    if name.isascii() and name.isdecimal() and int(name) in numbers:
        return versions.get(int(name))
    known = ", ".join(map(str, numbers)) or "none"
    reason = f"there is no version {name!r}; its versions: {known}, and {CURRENT}"
    raise VersionMissingError(str(folder.located(folder.path)), reason)
