"""StreamCheckpoint: an unfinished result of a stream, and from where its stream goes on.

The items lie in one segment, in order; that becomes the result. Positions are journalled as the
work goes on, see `positions`. What lies behind the one that an attempt goes on from is cut off.
"""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import xxhash
from typing_extensions import override

from dagster_dataops.checkpoints.checkpoint import Checkpoint, CheckpointContent
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.journal.positions import (
    NOTHING,
    Extent,
    Position,
    StageParts,
    borne_out,
    intact,
)
from dagster_dataops.checkpoints.journal.segments import SegmentWriter, segment_path
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import COPY_BYTES, draft_of, storage
from dagster_dataops.datasets.writer import linked
from dagster_dataops.errors import StorageError

_SEGMENT: Final = 1


def quarantine_of(folder: Path) -> Path:
    """Return the file of failed items of the checkpoint in ``folder``."""
    return folder / "quarantine.jsonl"


def cut_quarantine(folder: Path, position: Position) -> None:
    """Cut off the failed items behind a position; the last of them may be torn."""
    path = quarantine_of(folder)
    if path.exists():
        with storage(path, "cut off what was not settled"):
            os.truncate(path, position.quarantined.size)


def intact_positions(folder: Path, positions: Iterable[Position]) -> list[Position]:
    """Return the positions that the files in ``folder`` bear out, the furthest first."""
    return intact(positions, segment_path(folder, _SEGMENT), quarantine_of(folder))


class StreamCheckpoint(Checkpoint):
    """A checkpoint that a stream is written to.

    Args:
        content: What to go on from, or a new one.
        fingerprint: Of this attempt.
        run: Name of this attempt.
        flush_seconds: How much may be lost to a power failure.
        stages: What the stream consists of.
        position: Where in ``content`` it goes on; ``None`` from the start.

    Attributes:
        items: How many are written and safe from a kill.
        size: Bytes that they take.
    """

    def __init__(
        self,
        content: CheckpointContent,
        fingerprint: RunFingerprint,
        run: str,
        flush_seconds: float,
        stages: StageParts,
        position: Position | None,
    ) -> None:
        self.items = position.items if position else 0
        self.size = position.size if position else 0
        content.table.records = self.items
        super().__init__(content, fingerprint, run, flush_seconds)
        self._digest = xxhash.xxh3_128()
        self._quarantined, self._quarantine_digest = NOTHING, xxhash.xxh3_128()
        self._segment = SegmentWriter(self.folder, _SEGMENT, exists=True)
        with storage(self._segment.path, "cut off what was not settled"):
            os.ftruncate(self._segment.descriptor, self.size)
            self._take_in(self.size)
        self._segment.offset = self.size
        if position is None:
            self._journal.stages(stages)

    @property
    def quarantine(self) -> Path:
        """Where items that failed are kept."""
        return quarantine_of(self.folder)

    def _take_in_quarantine(self) -> Extent:
        """Return what the quarantine file holds by now; nobody but the stream writes to it."""
        if self.quarantine.exists():
            size = self._quarantined.size
            with storage(self.quarantine, "read back"), self.quarantine.open("rb") as file:
                file.seek(size)
                while block := file.read(COPY_BYTES):
                    self._quarantine_digest.update(block)
                    size += len(block)
            self._quarantined = Extent(size, self._quarantine_digest.digest())
        return self._quarantined

    def check_quarantine(self) -> None:
        """Refuse to publish fewer or other failed items than were settled.

        Raises:
            StorageError: The quarantine file is not what was written.
        """
        if not borne_out(self.quarantine, {self._quarantined}):
            reason = "is not what was written; check the disk, and run again to do the rest anew"
            raise StorageError(str(self.quarantine), "read back the failed items", reason)

    def _take_in(self, size: int) -> None:
        with self._segment.path.open("rb") as file:
            while size and (block := file.read(min(COPY_BYTES, size))):
                self._digest.update(block)
                size -= len(block)

    def write(self, lines: bytes | bytearray) -> None:
        """Write the lines of some items; they count once they are settled."""
        self._segment.append(lines)
        self._digest.update(lines)

    def settle_items(self, items: int, state: bytes) -> None:
        """Journal a position.

        Args:
            items: How many were written in all.
            state: What the stream goes on from, by `positions.without_stages`.
        """
        self.items, self.size = items, self._segment.offset
        self.table.records = items
        quarantined = self._take_in_quarantine()
        digest = self._digest.digest()
        self._journal.position(Position(items, self.size, digest, state, quarantined))
        self._dirty.add(_SEGMENT)

    @override
    def sync(self) -> None:
        if self.quarantine.exists():
            with storage(self.quarantine, "sync"), self.quarantine.open("rb") as file:
                os.fdatasync(file.fileno())
        super().sync()

    def draft(self, result: Path) -> tuple[JsonlDataset, int]:
        """Make the draft of the result of what is settled, durably.

        Returns:
            The handle that it will have once in place, and the modification time of its file.
        """
        draft = draft_of(result)
        with storage(draft, "write"):
            if not linked(self._segment.path, draft):
                shutil.copyfile(self._segment.path, draft)
            with draft.open("rb") as file:
                os.fsync(file.fileno())
                modified_ns = os.fstat(file.fileno()).st_mtime_ns
        digest = f"xxh3:{self._digest.hexdigest()}"
        return JsonlDataset(result, self.size, self.items, digest), modified_ns

    @override
    def close(self) -> None:
        self._segment.close()
        super().close()
