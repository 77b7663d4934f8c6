"""`BucketVersions`: earlier results of a node in a bucket; see `KeptHeads`.

A version that is read or restored is fetched into the working copy of the node.
"""

import os
import shutil
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.places.kept_heads import KeptHeads
from dagster_dataops.checkpoints.places.published_objects import NodeHead, PublishedObjects
from dagster_dataops.checkpoints.versions.version import ResultVersion
from dagster_dataops.datasets.durable_files import make_folder, storage, write_durably
from dagster_dataops.datasets.fetched_file import fetch
from dagster_dataops.datasets.published_files import HISTORY
from dagster_dataops.errors import ResultMissingError, VersionMissingError
from dagster_dataops.foundation.places.bucket import StoreBucket
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

    def numbers(self) -> list[int]:
        """Return the numbers of the versions, the oldest first."""
        return self._heads.numbers()

    def manifest(self, number: int) -> bytes:
        """Return the manifest of a version; empty if it is gone."""
        content = self._heads.content(number)
        return _head(content).manifest() if content else b""

    def get(self, number: int) -> ResultVersion:
        """Return a version, fetched to this machine.

        Raises:
            VersionMissingError: It is gone, or one of its files is.
        """
        content = self._heads.content(number)
        if not content:
            place = str(self._folder.located(self._folder.path))
            raise VersionMissingError(place, f"there is no version {number}")
        head = _head(content)
        folder = NodeFolder(self._folder.path / HISTORY / str(number), self._folder.name)
        if not _is_here(head, folder):
            self._fetch(head, folder)
        return ResultVersion.of(str(number), folder)

    def _fetch(self, head: NodeHead, folder: NodeFolder) -> None:
        """Fetch the files of a version; the manifest is written last."""
        shutil.rmtree(folder.path, ignore_errors=True)
        make_folder(folder.path)
        latest = 0
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
            latest = max(latest, file["modified_ns"])
        write_durably(folder.manifest, head.manifest())
        _set_time(folder.manifest, latest)

    def keep(self) -> bool:
        """Keep the result in place as the newest version; nothing is copied.

        Raises:
            StorageError: The store refuses.
        """
        head = self._objects.head()
        if head is not None:
            self._heads.add(head.content)
        return False

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove versions, with their files unless another version or the present result has them.

        Raises:
            StorageError: The store refuses.
        """
        removed = list(numbers)
        if not removed:
            return
        keys = self._heads.remove(removed)
        used = self._objects.objects_in_use(self._objects.head())
        self._objects.store.remove(sorted(keys - used))
        for number in removed:
            shutil.rmtree(self._folder.path / HISTORY / str(number), ignore_errors=True)


def _head(content: dict[str, object]) -> NodeHead:
    return NodeHead(content, Version(""))


def _is_here(head: NodeHead, folder: NodeFolder) -> bool:
    """Return whether a version was fetched, and none of its files was deleted since."""
    if not all((folder.path / name).exists() for name in head.files):
        return False
    return folder.manifest.exists() and folder.manifest.read_bytes() == head.manifest()


def _set_time(path: Path, modified_ns: int) -> None:
    with storage(path, "set the modification time"):
        os.utime(path, ns=(modified_ns, modified_ns))
