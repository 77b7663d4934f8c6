"""Segments: files that hold the output of settled spans.

Most are append-only, with one writer each. The main segment of a run is written by all workers at
once, each output where it belongs in the result, so that publishing need not copy it.
"""

import os
from pathlib import Path
from typing import TypeAlias

import xxhash

from dagster_dataops.datasets.durable_files import storage

Bytes: TypeAlias = bytes | bytearray | memoryview


def checksum(data: bytes) -> int:
    """Return the 32-bit checksum that spans carry."""
    return xxhash.xxh3_64_intdigest(data) & 0xFFFFFFFF


def segment_path(folder: Path, number: int) -> Path:
    """Return where segment ``number`` of a checkpoint is."""
    return folder / f"segment-{number:05d}.jsonl"


class SegmentWriter:
    """Writes one segment.

    Args:
        folder: The checkpoint's folder.
        number: Which segment.
        shared: Whether others write to it as well; if not, it must not exist yet.
    """

    def __init__(self, folder: Path, number: int, *, shared: bool = False) -> None:
        self.number = number
        self.path = segment_path(folder, number)
        self.offset = 0
        with storage(self.path, "create the segment"):
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            flags |= 0 if shared else os.O_EXCL
            self.descriptor = os.open(self.path, flags, 0o666)

    def append(self, *parts: Bytes) -> int:
        """Append ``parts`` one after the other and return the offset of the first."""
        offset = self.offset
        self.write_at(offset, *parts)
        self.offset = offset + sum(map(len, parts))
        return offset

    def write_at(self, offset: int, *parts: Bytes) -> None:
        """Write ``parts`` one after the other from ``offset``.

        A write cut short by a full disk leaves bytes that nobody refers to, and that the next
        write goes over.
        """
        with storage(self.path, "write"):
            for part in parts:
                written = os.pwrite(self.descriptor, part, offset) if part else 0
                while written < len(part):
                    rest = memoryview(part)[written:]
                    written += os.pwrite(self.descriptor, rest, offset + written)
                offset += len(part)

    def close(self) -> None:
        """Close the file; safe to call twice."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            with storage(self.path, "close"):  # network file systems may refuse data this late
                os.close(descriptor)
