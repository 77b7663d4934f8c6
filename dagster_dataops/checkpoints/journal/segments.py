"""Segments: append-only files that hold the output of settled spans, one writer each.

`Segments` is the port by which they are read: `SegmentReader` and the composition ask it for open
files, and do not ask where these are. In a bucket parts of them are objects, see `SentSegments`.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, TypeAlias

import xxhash

from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.errors import StorageError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.opening import open_readable
from dagster_dataops.foundation.places.range_source import Readable

SEND_BYTES: Final = 4 << 20  # are sent at once, so that a machine holds few that are unsent
MOST_UNSENT_BYTES: Final = 16 << 20  # of a machine; then its workers wait for the store
_NAME: Final = r"segment-([0-9]+)\.jsonl"
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


class Segments:
    """The segments of a checkpoint, in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def location(self, number: int) -> Location:
        """Return where a segment is, for errors."""
        return segment_path(self.folder, number)

    def open(self, number: int) -> Readable | None:
        """Open a segment; ``None`` if it is missing. Close it with `close_readable`.

        Raises:
            OSError: It cannot be read.
        """
        try:
            return open_readable(self.location(number))
        except FileNotFoundError:
            return None

    def file(self, number: int) -> Path | None:
        """Return the file with a whole segment, which stays whole; ``None`` if there is none."""
        path = segment_path(self.folder, number)
        return path if path.exists() else None

    def names(self) -> set[str]:
        """Return the names of the files of segments."""
        return {path.name for path in self.folder.glob("segment-*.jsonl")}

    def latest(self) -> int:
        """Return the highest number of a segment; 0 if there is none."""
        matches = (re.fullmatch(_NAME, name) for name in self.names())
        return max((int(match[1]) for match in matches if match), default=0)

    def fetch(self) -> None:
        """Make the folder hold all segments whole from now on."""

    def objects(self, places: Iterable[tuple[int, int, int]]) -> list[list[Any]]:  # noqa: ARG002
        """Return where outputs are in a bucket.

        Args:
            places: Segment, offset and length of each output, in order.

        Returns:
            Key, offset and length of each piece, in order.

        Raises:
            StorageError: Some are not in a bucket.
        """
        raise StorageError(str(self.folder), "find outputs", "they are in no bucket")


class OnlySegment(Segments):
    """A file that is the only segment of a journal, such as a published result."""

    def __init__(self, location: Location) -> None:
        self._location = location

    @override
    def location(self, number: int) -> Location:
        return self._location


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
