"""`ResultVersion`: a published result of a node, the present one or one that was kept."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import VersionMissingError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import BucketFile
from dagster_dataops.foundation.quantities import counted

CURRENT: Final = "current"


@dataclass(frozen=True, repr=False)
class ResultVersion:
    """A published result of a node.

    Attributes:
        name: ``current``, or the number of a kept result; the oldest has the lowest.
        manifest: Its manifest.
        published: When it was published.
        place: The folder that its files are in, or are fetched to when `folder` is read.
        fetch: Fetches the files; ``None`` if they are there.
        objects: In a bucket the object of each file, by its path in the folder.
    """

    name: str
    manifest: Manifest
    published: datetime
    place: NodeFolder
    fetch: Callable[[], None] | None = field(default=None, compare=False)
    objects: Mapping[str, BucketFile] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls, name: str, folder: NodeFolder, fetch: Callable[[], None] | None = None
    ) -> "ResultVersion":
        """Return the version whose files are in a folder.

        Raises:
            VersionMissingError: It has no manifest that can be read.
        """
        manifest = Manifest.of(folder)
        if manifest is None:
            place = str(folder.located(folder.manifest))
            raise VersionMissingError(place, "the manifest of the result is missing or damaged")
        written = folder.manifest.stat().st_mtime
        return cls(name, manifest, datetime.fromtimestamp(written, UTC), folder, fetch)

    @cached_property
    def folder(self) -> NodeFolder:
        """The folder with its files, as the folder of the node holds them.

        Raises:
            VersionMissingError: A file is gone from the bucket.
            StorageError: The store cannot be reached.
        """
        if self.fetch is not None:
            self.fetch()
        return self.place

    @property
    def results(self) -> dict[str, JsonlDataset]:
        """The handle of each result by the name of its output; without a name if there is one."""
        parts = self.manifest.parts(self.folder)
        return {name: part.dataset(place) for name, (place, part) in parts.items()}

    @override
    def __repr__(self) -> str:
        return f"<version {'  '.join(self._words()).lstrip()}>"

    @override
    def __str__(self) -> str:
        return "  ".join(self._words())

    def _words(self) -> Iterator[str]:
        manifest = self.manifest
        yield f"{self.name:>8}"
        yield self.published.astimezone().isoformat(" ", "seconds")
        yield counted(manifest.rows_out, "records")
        if manifest.dropped:
            yield f"{manifest.dropped:,} dropped"
        if manifest.failed:
            yield f"{manifest.failed:,} failed"
        yield f"{manifest.size_bytes:,} bytes"
        yield f"run {manifest.run}"
