"""Segments: append-only files that hold the output of settled spans, one writer each."""

import os
from pathlib import Path

import xxhash

from dagster_dataops.datasets.files import storage


def checksum(data: bytes) -> int:
    """Return the 32-bit checksum that spans carry."""
    return xxhash.xxh3_64_intdigest(data) & 0xFFFFFFFF


def segment_path(folder: Path, number: int) -> Path:
    """Return where segment ``number`` of a checkpoint is."""
    return folder / f"segment-{number:05d}.jsonl"


class SegmentWriter:
    """The only writer of one segment; a segment is never opened for writing again."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self.path = segment_path(folder, number)
        self.offset = 0
        with storage(self.path, "create the segment"):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self.descriptor = os.open(self.path, flags, 0o666)

    def append(self, data: bytes) -> int:
        """Append ``data`` and return the offset at which it lies."""
        offset = self.offset
        with storage(self.path, "write"):
            # At its place, not at the end: a write cut short by a full disk is written over.
            written = os.pwrite(self.descriptor, data, offset)
            while written < len(data):
                written += os.pwrite(self.descriptor, data[written:], offset + written)
        self.offset = offset + len(data)
        return offset

    def close(self) -> None:
        """Close the file; safe to call twice."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            with storage(self.path, "close"):  # network file systems may refuse data this late
                os.close(descriptor)
