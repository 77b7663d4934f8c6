"""Results as sources: jsonl files that are identified by a digest of their whole content."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dagster_dataops.errors import InputError, StreamSourceError
from dagster_dataops.foundation.hashing.file_digests import cached_digest
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.opening import is_compressed, state_at
from dagster_dataops.foundation.places.range_source import close_readable, size_of
from dagster_dataops.streams.core.random_access import RandomAccess
from dagster_dataops.streams.core.stage import ReadContext
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.files.blocks import BLOCK_BYTES
from dagster_dataops.streams.files.contents import FRAMES
from dagster_dataops.streams.files.descriptors import naming_path, open_frames, open_text
from dagster_dataops.streams.files.file_sets import FileSet
from dagster_dataops.streams.files.file_stages import NOWHERE
from dagster_dataops.streams.files.jsonl import JsonLines


@dataclass(eq=False)
class ResultRecords(JsonLines):
    """Yield the records of a result file.

    Attributes:
        where: The path of the file.
        size_bytes: The size of the file when its dataset was created.
        content: The digest of all its bytes, ``xxh3:...``. If ``None``, it is computed when a
            state is first taken or loaded.
        stamp: Device, inode, size, modification time and change time of the file when it had this
            digest. If the file differs now, the digest is computed again.
    """

    where: str = ""
    size_bytes: int = 0
    content: str | None = None
    stamp: tuple[int, ...] | None = None

    @override
    def access(self, context: ReadContext) -> RandomAccess | None:
        if self.files.compression == FRAMES:  # else compressed bytes would be taken for lines
            close_readable(open_frames(self.files.paths[0]))
        return super().access(context)

    @override
    def options(self) -> dict[str, Any]:
        return {}  # the content alone identifies it

    @override
    def identity(self) -> object:
        path = self.files.paths[0]
        with naming_path(path):
            state = state_at(Path(path))
        size = _size_of(path)
        if size != self.size_bytes:
            reason = (
                f"has {size:,} bytes, not the {self.size_bytes:,} of the dataset; create "
                "the dataset again to read the present content"
            )
            raise StreamSourceError(self.where, reason)
        known = self.content if state == self.stamp else None
        return [known or _digest(path, state), super().identity()]


def read_result(
    path: Path, size_bytes: int, content: str | None, state: tuple[int, ...] | None = None
) -> DataPipelineBuilder:
    """Return a stream of the records of a result; see `ResultRecords`."""
    present = path.resolve() if path.is_dir() else path  # of parts the version, never changed
    compressed = is_compressed(path.name)
    files = FileSet((str(present),), compression=FRAMES if compressed else None)
    stage = ResultRecords(files, BLOCK_BYTES, NOWHERE, str(path), size_bytes, content, state)
    return DataPipelineBuilder(stage)


def _size_of(path: str) -> int:
    source = open_text(path)
    try:
        return size_of(source)
    finally:
        close_readable(source)


def _digest(path: str, state: tuple[int, ...]) -> str:
    try:
        return cached_digest(Path(path), state)
    except InputError as error:
        raise StreamSourceError(error.source, error.reason) from error
