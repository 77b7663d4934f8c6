"""`BucketVersions`: earlier results of a node in a bucket; see `KeptHeads`.

The files of a version are fetched into the working copy of the node when they are read.
"""

import os
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.places.kept_heads import KeptHeads
from dagster_dataops.checkpoints.places.published_objects import NodeHead, PublishedObjects
from dagster_dataops.checkpoints.versions.version import ResultVersion
from dagster_dataops.datasets.durable_files import make_folder, storage, write_durably
from dagster_dataops.datasets.fetched_file import fetch
from dagster_dataops.datasets.published_files import HISTORY
from dagster_dataops.errors import ResultMissingError, VersionMissingError
from dagster_dataops.foundation.places.bucket import BucketFile, LocalFile, StoreBucket
from dagster_dataops.foundation.places.joined_object import readable
from dagster_dataops.foundation.places.result_store import Version


class BucketVersions:
    """The versions of the result of a node. What changes them has claimed the node.

    Args:
        folder: Of the node, in the working copy of a bucket.
        bucket: The bucket.
    """

    def __init__(self, folder: NodeFolder, bucket: StoreBucket) -> None:
        self._folder = folder
        self._objects = PublishedObjects(bucket, folder.path, folder.name)

    @cached_property
    def _heads(self) -> KeptHeads:
        return KeptHeads(self._objects.store, self._objects.key)

    @property
    def _writable_heads(self) -> KeptHeads:
        return KeptHeads(self._objects.writable, self._objects.key)

    def numbers(self) -> list[int]:
        """Return the numbers of the versions, the oldest first."""
        return self._heads.numbers()

    def manifest(self, number: int) -> bytes:
        """Return the manifest of a version; empty if it is gone."""
        content = self._heads.content(number)
        return _head(content).manifest() if content else b""

    def manifest_file(self, number: int) -> LocalFile:
        """Return the object with the head of a version."""
        return self._folder.located(self._heads.path(self._folder.path, number))

    def get(self, number: int) -> ResultVersion:
        """Return a version. Its files are fetched when its folder is read.

        Raises:
            VersionMissingError: It is gone, or its manifest cannot be read.
        """
        place = self._folder.located(self._folder.path)
        content = self._heads.content(number)
        if not content:
            raise VersionMissingError(str(place), f"there is no version {number}")
        head = _head(content)
        manifest = Manifest.parse(head.manifest(), self.manifest_file(number))
        if manifest is None:
            raise VersionMissingError(str(place), f"the manifest of version {number} is damaged")
        folder = NodeFolder(self._folder.path / HISTORY / str(number), self._folder.name)
        published = datetime.fromtimestamp(_written_ns(head) / 1e9, UTC)
        fetch = partial(self._fetch, head, folder)
        objects = {
            name: BucketFile(self._objects.bucket, file["key"])
            for name, file in head.files.items()
            if file["key"]
        }
        return ResultVersion(str(number), manifest, published, folder, fetch, objects)

    def _fetch(self, head: NodeHead, folder: NodeFolder) -> None:
        """Fetch the files of a version, unless they are here; the manifest is written last."""
        here = folder.manifest.exists() and folder.manifest.read_bytes() == head.manifest()
        if here and all((folder.path / name).exists() for name in head.files):  # none was deleted
            return
        shutil.rmtree(folder.path, ignore_errors=True)
        make_folder(folder.path)
        for name, file in head.files.items():
            path = folder.path / name
            if not file["key"]:
                make_folder(path)
                continue
            try:
                fetch(readable(self._objects.store, file["key"]), file["key"], path)
            except ResultMissingError as error:
                raise VersionMissingError(error.path, error.reason) from None
            _set_time(path, file["modified_ns"])
        write_durably(folder.manifest, head.manifest())
        _set_time(folder.manifest, _written_ns(head))

    def keep(self) -> bool:
        """Keep the result in place as the newest version; nothing is copied.

        Raises:
            StorageError: The store refuses.
        """
        head = self._objects.head()
        if head is not None:
            self._writable_heads.add(head.content)
        return False

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove versions, with their files unless another version or the present result has them.

        Raises:
            StorageError: The store refuses.
        """
        removed = list(numbers)
        if not removed:
            return
        keys = self._writable_heads.remove(removed)
        used = self._objects.objects_in_use(self._objects.head())
        self._objects.writable.remove(sorted(keys - used))
        for number in removed:
            shutil.rmtree(self._folder.path / HISTORY / str(number), ignore_errors=True)


def _head(content: dict[str, object]) -> NodeHead:
    return NodeHead(content, Version(""))


def _written_ns(head: NodeHead) -> int:
    """Return when the last file of a version was written."""
    return max((file["modified_ns"] for file in head.files.values()), default=0)


def _set_time(path: Path, modified_ns: int) -> None:
    with storage(path, "set the modification time"):
        os.utime(path, ns=(modified_ns, modified_ns))
