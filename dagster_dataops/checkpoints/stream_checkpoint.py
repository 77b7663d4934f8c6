"""StreamCheckpoint: the written items of an unfinished stream, and its positions.

The items are in one segment, in order; this segment becomes the result. Positions are journalled
during the run, see `positions`. An attempt cuts off the items behind the position at which it
continues.
"""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import xxhash

from dagster_dataops.checkpoints.checkpoint import Checkpoint, CheckpointContent
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.checkpoints.journal.positions import (
    NOTHING,
    Extent,
    Position,
    StageParts,
    confirmed,
    intact,
)
from dagster_dataops.checkpoints.journal.segments import SegmentWriter, segment_path
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import COPY_BYTES, draft_of, storage
from dagster_dataops.datasets.writer import JsonlWriter, linked
from dagster_dataops.errors import StorageError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.opening import is_compressed

_SEGMENT: Final = 1


def quarantine_of(folder: Path) -> Path:
    """Return the file of failed items of the checkpoint in ``folder``."""
    return folder / "quarantine.jsonl"


def cut_quarantine(folder: Path, position: Position) -> None:
    """Cut off the failed items behind a position; the last of them may be torn."""
    path = quarantine_of(folder)
    if path.exists():
        with storage(path, "cut off the unsettled items"):
            os.truncate(path, position.quarantined.size)


def intact_positions(folder: Path, positions: Iterable[Position]) -> list[Position]:
    """Return the positions that the files in ``folder`` confirm, the furthest position first."""
    return intact(positions, segment_path(folder, _SEGMENT), quarantine_of(folder))


class StreamCheckpoint(Checkpoint):
    """A checkpoint to which a stream is written.

    Args:
        content: The content to continue, or the content of a new checkpoint.
        fingerprint: The fingerprint of this run.
        run: Name of this run.
        flush_seconds: Seconds of finished work that a power failure may cost.
        stages: The stages of the stream.
        position: The position in ``content`` at which the stream continues; ``None`` for its start.
        open_journal: Return the writer of the journal at a path.

    Attributes:
        items: Number of settled items.
        size: Size of their lines in bytes.
    """

    def __init__(  # noqa: PLR0913
        self,
        content: CheckpointContent,
        fingerprint: RunFingerprint,
        run: str,
        flush_seconds: float,
        stages: StageParts,
        position: Position | None,
        *,
        open_journal: Callable[[Path], JournalWriter] = JournalWriter,
    ) -> None:
        self.items = position.items if position else 0
        self.size = position.size if position else 0
        content.table.records = self.items
        super().__init__(content, fingerprint, run, flush_seconds, open_journal)
        if position is not None:
            self._journal.begin_at(position.size, position.quarantined.size)
        self._digest = xxhash.xxh3_128()
        self._quarantined, self._quarantine_digest = NOTHING, xxhash.xxh3_128()
        self._segment = SegmentWriter(self.folder, _SEGMENT, exists=True)
        with storage(self._segment.path, "cut off the unsettled items"):
            os.ftruncate(self._segment.descriptor, self.size)
            with self._segment.path.open("rb") as file:
                while block := file.read(COPY_BYTES):
                    self._digest.update(block)
        self._segment.offset = self.size
        if position is None:
            self._journal.stages(stages)

    @property
    def unsettled_bytes(self) -> int:
        """The size of the lines that were written after the last position."""
        return self._segment.offset - self.size

    @property
    def quarantine(self) -> Path:
        """The file of failed items."""
        return quarantine_of(self.folder)

    def _take_in_quarantine(self) -> Extent:
        """Return the present extent of the quarantine file; only the stream writes to it."""
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
        """Check that the quarantine file contains the failed items that were settled.

        Raises:
            StorageError: The file differs from the written content.
        """
        if not confirmed(self.quarantine, {self._quarantined}):
            reason = "differs from the written content; check the disk, then run again"
            raise StorageError(str(self.quarantine), "read back the failed items", reason)

    def write(self, lines: bytes | bytearray) -> None:
        """Write the lines of items; they count after `journal_items`."""
        self._segment.append(lines)
        self._digest.update(lines)

    def journal_items(self, items: int, state: bytes) -> None:
        """Journal a position.

        Args:
            items: Number of all written items.
            state: The state of the stream, by `positions.without_stages`.
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

    def draft(self, result: Path) -> tuple[JsonlDataset, int, int]:
        """Make the draft of the result from the settled items, durably.

        Returns:
            The handle that the result will have in place, the modification time of its file in
            nanoseconds, and the size of the file if it is compressed, else 0.
        """
        if is_compressed(result.name):
            return self._compressed_draft(result)
        draft = draft_of(result)
        with storage(draft, "write"):
            if not linked(self._segment.path, draft):
                shutil.copyfile(self._segment.path, draft)
            with draft.open("rb") as file:
                os.fsync(file.fileno())
                modified_ns = os.fstat(file.fileno()).st_mtime_ns
        digest = f"xxh3:{self._digest.hexdigest()}"
        return JsonlDataset(result, self.size, self.items, digest), modified_ns, 0

    def _compressed_draft(self, result: Path) -> tuple[JsonlDataset, int, int]:
        with JsonlWriter(result) as writer:
            with storage(self._segment.path, "read back"), self._segment.path.open("rb") as file:
                while block := file.read(COPY_BYTES):
                    writer.write(block, 0)
            writer.rows = self.items
            draft = writer.finish()
            if draft.fingerprint != f"xxh3:{self._digest.hexdigest()}":
                reason = "differs from the written content; check the disk, then run again"
                raise StorageError(str(self._segment.path), "read back the items", reason)
            return draft, writer.modified_ns, writer.compressed_bytes

    @override
    def close(self) -> None:
        self._segment.close()
        super().close()
