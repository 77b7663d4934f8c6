"""`FolderPlace`: the files of a node are in its folder, where a file is published by its name."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.checkpoints.places.node_place import Claim, NodePlace, Outputs, PublishedFile
from dagster_dataops.datasets.published_files import result_name
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.opening import FORMS


class FolderClaim(FolderLock, Claim):
    """A claim on a folder: the lock."""

    @override
    def writer(
        self, path: Path, outputs: Outputs | None = None, whole_bytes: float = 0
    ) -> JsonlWriter:
        return JsonlWriter(path)

    @override
    def publishing(
        self, files: Mapping[Path, Location], manifest: bytes
    ) -> AbstractContextManager[None]:
        del files, manifest  # they are put in place inside the block
        return nullcontext()


class FolderPlace(NodePlace):
    """A folder of this machine, or of a file system that it mounts."""

    @override
    def claim(self, run: str, wait_seconds: float) -> FolderClaim:
        return FolderClaim(self.folder, run, wait_seconds)

    @override
    def publish(self, files: Mapping[Path, Location], manifest: bytes) -> None:
        del files, manifest  # they are in place

    @override
    def refresh(self, *, whole: bool = True) -> None:
        pass  # it has no other copy

    @override
    def is_published(self) -> bool:
        names = (result_name(self.name, form) for form in FORMS)
        return any((self.folder / name).exists() for name in names)

    @override
    def find(self, path: Path) -> PublishedFile | None:
        return PublishedFile.of(path)

    @override
    def uri(self, path: Path) -> str:
        return path.absolute().as_uri()

    @override
    def address(self, path: Path) -> str:
        return path.as_uri()
