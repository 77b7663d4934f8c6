"""Results as sources: jsonl files whose whole content tells them from others."""

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
    """The records of a result.

    Attributes:
        where: Where it lies.
        size_bytes: How long it was when its handle was made.
        content: Digest of all its bytes, ``xxh3:...``; ``None`` has it computed when a state is
            first taken or loaded.
        state: Of the file when it had that content: device, inode, size, modification and change
            time. The digest of a file in another state is computed anew.
    """

    where: str = ""
    size_bytes: int = 0
    content: str | None = None
    state: tuple[int, ...] | None = None

    @override
    def options(self) -> dict[str, Any]:
        return {}  # its content is what it is

    @override
    def identity(self) -> object:
        with opened(self.where) as descriptor:
            found = os.fstat(descriptor)
        if found.st_size != self.size_bytes:
            reason = (
                f"has {found.st_size:,} bytes, not the {self.size_bytes:,} of the dataset; make "
                "its handle anew to read what is there now"
            )
            raise StreamSourceError(self.where, reason)
        known = self.content if _state(found) == self.state else None
        return [known or content_digest(self.where), super().identity()]


def read_stored(
    path: Path, size_bytes: int, content: str | None, state: tuple[int, ...] | None = None
) -> DataPipelineBuilder:
    """Read a result; see `Stored`."""
    files = FileSet((str(path),), compression=None)
    stage = Stored(files, BLOCK_BYTES, NOWHERE, str(path), size_bytes, content, state)
    return DataPipelineBuilder(stage)


def content_digest(path: str) -> str:
    """Return the digest of all bytes of a file, found once for as long as it stays as it is.

    Raises:
        StreamSourceError: It cannot be read.
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
