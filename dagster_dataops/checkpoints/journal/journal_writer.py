"""JournalWriter: appends entries to the journal of a checkpoint. `journal_reader` reads them."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dagster_dataops.checkpoints.journal.frames import (
    FrameKind,
    frame,
    json_frame,
    reopened_frame,
    spans_frame,
)
from dagster_dataops.checkpoints.journal.positions import Position, StageParts, pack_position
from dagster_dataops.checkpoints.journal.segments import Segments
from dagster_dataops.checkpoints.journal.span import ReopenedEntry, SpansEntry
from dagster_dataops.datasets.durable_files import storage, sync_data, write_all

if TYPE_CHECKING:
    from dagster_dataops.checkpoints.journal.sent_pieces import SentObject


class JournalWriter:
    """Appends entries to a journal. Every method may raise a `StorageError`.

    Args:
        path: The file; created if it is missing.

    Attributes:
        on_disk: Whether the entries are kept where ``path`` is.
        sync_share: `sync` takes at most one part in ``sync_share`` of the time of a run.
        least_seconds: The least time between two calls of `sync` during a run.
        sends: Whether `sync` sends outputs to a store, and notes in files up to where; see
            `await_room`.
        unsent_bytes: Of outputs that `sync` has not sent yet.
    """

    on_disk: ClassVar[bool] = True
    sync_share: ClassVar[int] = 50
    least_seconds: ClassVar[float] = 0.0
    sends: ClassVar[bool] = False
    unsent_bytes: int = 0

    def __init__(self, path: Path) -> None:
        self.path = path
        with storage(path, "open the journal"):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(path, flags, 0o666)

    @property
    def segments(self) -> Segments:
        """The segments with the outputs of the entries."""
        return Segments(self.path.parent)

    def attempt(self, content: Mapping[str, Any]) -> None:
        """Append the start of an attempt, as `AttemptEntry.content` returns it."""
        self.append(json_frame(FrameKind.ATTEMPT, dict(content)))

    def spans(self, entry: SpansEntry) -> None:
        """Append settled spans."""
        self.append(spans_frame(entry))

    def reopened(self, entry: ReopenedEntry, parts: SpansEntry | None) -> None:
        """Append that spans count no more, and the spans that replace them, in one step."""
        frames = reopened_frame(entry.starts, retries=entry.retries)
        self.append(frames if parts is None else frames + spans_frame(parts))

    def stages(self, stages: StageParts) -> None:
        """Append the stages of a stream."""
        self.append(json_frame(FrameKind.STAGES, {"stages": [dict(parts) for parts in stages]}))

    def position(self, position: Position) -> None:
        """Append a position of a stream."""
        self.append(frame(FrameKind.POSITION, pack_position(position)))

    def sent(self, objects: "Iterable[SentObject]") -> None:
        """Note that agents have put outputs in a bucket; call it before `spans` with them."""

    def taken(self) -> None:
        """Note that the published result is a segment; call it before `spans` in it."""

    def begin_at(self, size: int, quarantined: int) -> None:
        """Note where a stream continues: sizes of its segment and its file of failed items."""

    def append(self, frames: bytes) -> None:
        """Append whole frames. A SIGKILL does not lose them; before `sync`, a power loss may."""
        with storage(self.path, "write"):
            before = os.lseek(self._descriptor, 0, os.SEEK_END)
            try:
                write_all(self._descriptor, frames)
            except OSError:
                os.ftruncate(self._descriptor, before)  # no incomplete frame before later frames
                raise

    def sync(self, segments: Iterable[Path] = ()) -> None:
        """Make every appended entry survive a power loss.

        Args:
            segments: The files with the outputs of the entries, which are synced first.
        """
        for path in segments:
            sync_data(path)
        with storage(self.path, "sync"):
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the file; safe to call twice."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with storage(self.path, "close"):  # network file systems report failed writes late
                os.close(descriptor)
