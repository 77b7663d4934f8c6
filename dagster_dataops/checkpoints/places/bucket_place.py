"""`BucketPlace`: the files of a node are in a bucket, and its folder is a working copy."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dagster_dataops.checkpoints.places.bucket_claim import BucketClaim
from dagster_dataops.checkpoints.places.node_place import NodePlace, PublishedFile, PublishedFiles
from dagster_dataops.checkpoints.places.published_objects import PublishedObjects
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import (
    BucketFile,
    CopiedFile,
    Location,
    StoreBucket,
)


class BucketPlace(NodePlace):
    """A folder below a prefix of a bucket."""

    at_once = True

    def __init__(self, bucket: StoreBucket, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self._bucket = bucket
        self._objects = PublishedObjects(bucket, folder, name)

    @override
    def claim(self, run: str, wait_seconds: float) -> BucketClaim:
        return BucketClaim(self._objects, run, wait_seconds)

    @override
    def publish(self, files: Mapping[Path, Location], manifest: bytes) -> None:
        self._objects.publish(files, manifest)

    @override
    def refresh(self, *, whole: bool = True) -> None:
        self._objects.fetch(whole=whole)

    @override
    def is_published(self) -> bool:
        return self._objects.is_published()

    @override
    def remote(self) -> PublishedFiles | None:
        if not self._objects.store.shared:
            return None
        head = self._objects.head_to_fetch()
        if head is None:
            return None
        files = {name: self._stored(file) for name, file in head.files.items()}
        return PublishedFiles(head.manifest(), files)

    def _stored(self, file: Mapping[str, Any]) -> PublishedFile:
        location = BucketFile(self._bucket, file["key"])
        return PublishedFile(location, file["size"], file["modified_ns"])

    @override
    def find(self, path: Path) -> PublishedFile | None:
        published = PublishedFile.of(path)
        if published is not None:
            return published._replace(location=CopiedFile(self._bucket, path))
        file = self._objects.known_file(path)
        return None if file is None else self._stored(file)

    @override
    def uri(self, path: Path) -> str:
        return self._objects.url(path)

    @override
    def address(self, path: Path) -> str:
        folder = CopiedFile(self._bucket, self.folder)
        return str(folder)  # a file has another key after every publication
