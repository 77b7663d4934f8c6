"""Results as sources: jsonl files that are identified by a digest of their whole content."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import xxhash
from typing_extensions import override

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.files.blocks import BLOCK_BYTES
from dagster_dataops.streams.files.descriptors import opened
from dagster_dataops.streams.files.file_sets import FileSet
from dagster_dataops.streams.files.file_stages import NOWHERE
from dagster_dataops.streams.files.jsonl import JsonLines

_DIGESTED_BYTES: Final = 8 << 20


@dataclass(frozen=True, eq=False)
class Stored(JsonLines):
    """Yield the records of a result file.

    Attributes:
        where: The path of the file.
        size_bytes: The size of the file when its dataset was created.
        content: The digest of all its bytes, ``xxh3:...``. If ``None``, it is computed when a
            state is first taken or loaded.
        state: Device, inode, size, modification time and change time of the file when it had this
            digest. If the file differs now, the digest is computed again.
    """

    where: str = ""
    size_bytes: int = 0
    content: str | None = None
    state: tuple[int, ...] | None = None

    @override
    def options(self) -> dict[str, Any]:
        return {}  # the content alone identifies it

    @override
    def identity(self) -> object:
        with opened(self.where) as descriptor:
            found = os.fstat(descriptor)
        if found.st_size != self.size_bytes:
            reason = (
                f"has {found.st_size:,} bytes, not the {self.size_bytes:,} of the dataset; create "
                "the dataset again to read the present content"
            )
            raise StreamSourceError(self.where, reason)
        known = self.content if _state(found) == self.state else None
        return [known or content_digest(self.where), super().identity()]


def read_stored(
    path: Path, size_bytes: int, content: str | None, state: tuple[int, ...] | None = None
) -> DataPipelineBuilder:
    """Return a stream of the records of a result file; see `Stored`."""
    files = FileSet((str(path),), compression=None)
    stage = Stored(files, BLOCK_BYTES, NOWHERE, str(path), size_bytes, content, state)
    return DataPipelineBuilder(stage)


def content_digest(path: str) -> str:
    """Return the digest of all bytes of a file. It is cached until the file changes.

    Raises:
        StreamSourceError: The file cannot be read.
    """
    with opened(path) as descriptor:
        status = os.fstat(descriptor)
    return _digest(path, _state(status))


def _state(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@lru_cache(maxsize=64)
def _digest(path: str, _: tuple[int, ...]) -> str:
    digest = xxhash.xxh3_128()
    with opened(path) as descriptor, open(descriptor, "rb", closefd=False, buffering=0) as file:
        while block := file.read(_DIGESTED_BYTES):
            digest.update(block)
    return f"xxh3:{digest.hexdigest()}"
