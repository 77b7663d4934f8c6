"""Results as sources: jsonl files whose whole content tells them from others."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import xxhash
from typing_extensions import override

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.blocks import BLOCK_BYTES
from dagster_dataops.streams.descriptors import opened
from dagster_dataops.streams.file_sets import FileSet
from dagster_dataops.streams.file_stages import NOWHERE
from dagster_dataops.streams.jsonl import JsonLines
from dagster_dataops.streams.pipeline import DataPipelineBuilder

_DIGESTED_BYTES: Final = 8 << 20


@dataclass(frozen=True, eq=False)
class Stored(JsonLines):
    """The records of a result.

    Attributes:
        where: Where it lies.
        size_bytes: How long it was when its handle was made.
        content: Digest of all its bytes, ``xxh3:...``; ``None`` has it computed when a state is
            first taken or loaded.
    """

    where: str = ""
    size_bytes: int = 0
    content: str | None = None

    @override
    def options(self) -> dict[str, Any]:
        return {}  # its content is what it is

    @override
    def identity(self) -> object:
        with opened(self.where) as descriptor:
            found = os.fstat(descriptor).st_size
        if found != self.size_bytes:
            reason = (
                f"has {found:,} bytes, not the {self.size_bytes:,} of the dataset; make its handle "
                "anew to read what is there now"
            )
            raise StreamSourceError(self.where, reason)
        return [self.content or content_digest(self.where), super().identity()]


def read_stored(path: Path, size_bytes: int, content: str | None) -> DataPipelineBuilder:
    """Read a result; see `Stored`."""
    files = FileSet((str(path),), compression=None)
    stage = Stored(files, BLOCK_BYTES, NOWHERE, str(path), size_bytes, content)
    return DataPipelineBuilder(stage)


def content_digest(path: str) -> str:
    """Return the digest of all bytes of a file, found once for as long as it stays as it is.

    Raises:
        StreamSourceError: It cannot be read.
    """
    with opened(path) as descriptor:
        status = os.fstat(descriptor)
    return _digest(path, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))


@lru_cache(maxsize=64)
def _digest(path: str, _: tuple[int, ...]) -> str:
    digest = xxhash.xxh3_128()
    with opened(path) as descriptor, open(descriptor, "rb", closefd=False, buffering=0) as file:
        while block := file.read(_DIGESTED_BYTES):
            digest.update(block)
    return f"xxh3:{digest.hexdigest()}"
