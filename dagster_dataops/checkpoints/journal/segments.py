"""Segments: append-only files that hold the output of settled spans, one writer each."""

import os
from pathlib import Path
from typing import TypeAlias

import xxhash

from dagster_dataops.datasets.durable_files import storage

Bytes: TypeAlias = bytes | bytearray | memoryview


def checksum(data: Bytes, more: bytes = b"") -> int:
    """Return the 32-bit checksum that spans carry, of ``data`` and ``more`` joined."""
    if not more:
        return xxhash.xxh3_64_intdigest(data) & 0xFFFFFFFF
    digest = xxhash.xxh3_64(data)
    digest.update(more)
    return digest.intdigest() & 0xFFFFFFFF


def segment_path(folder: Path, number: int) -> Path:
    """Return the path of segment ``number`` of a checkpoint."""
    return folder / f"segment-{number:05d}.jsonl"


class SegmentWriter:
    """Writes one segment.

    Args:
        folder: The checkpoint's folder.
        number: Number of the segment.
        exists: Whether the segment may exist already; else its existence is an error.
    """

    def __init__(self, folder: Path, number: int, *, exists: bool = False) -> None:
        self.number = number
        self.path = segment_path(folder, number)
        self.offset = 0
        with storage(self.path, "create the segment"):
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            flags |= 0 if exists else os.O_EXCL
            self.descriptor = os.open(self.path, flags, 0o666)

    def append(self, *parts: Bytes) -> int:
        """Append ``parts`` one after another and return the offset of the first.

        A write that a full disk cuts short leaves bytes that no span refers to. The next write
        overwrites them.
        """
        first = end = self.offset
        with storage(self.path, "write"):
            for part in parts:
                written = os.pwrite(self.descriptor, part, end) if part else 0
                while written < len(part):
                    rest = memoryview(part)[written:]
                    written += os.pwrite(self.descriptor, rest, end + written)
                end += len(part)
        self.offset = end
        return first

    def close(self) -> None:
        """Close the file; safe to call twice."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            with storage(self.path, "close"):  # network file systems report failed writes late
                os.close(descriptor)
