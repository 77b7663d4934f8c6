"""Checkpoint: the settled records of one unfinished run, on disk.

A checkpoint is a folder with a journal and segments. It belongs to a `RunFingerprint`. A run with
another fingerprint does not use it, and keeps it until a new result is published.
"""

import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dagster_dataops.checkpoints.folder.run_fingerprint import (
    CHANGEABLE,
    RunFingerprint,
    other_parts,
)
from dagster_dataops.checkpoints.journal.journal_reader import (
    AttemptEntry,
    format_in,
    format_of,
    is_read,
    read_journal,
)
from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.checkpoints.journal.segments import (
    MOST_UNSENT_BYTES,
    SEND_BYTES,
    Segments,
    SegmentWriter,
    segment_path,
)
from dagster_dataops.checkpoints.journal.span import ReopenedEntry, SpansEntry
from dagster_dataops.checkpoints.journal.span_notes import add_counts
from dagster_dataops.checkpoints.journal.span_table import SpanTable
from dagster_dataops.datasets.durable_files import make_folder, storage, sync_folder
from dagster_dataops.datasets.published_files import JOURNAL
from dagster_dataops.errors import StorageError
from dagster_dataops.foundation.concurrency.background import background
from dagster_dataops.foundation.frozen import changeable

if TYPE_CHECKING:
    from dagster_dataops.checkpoints.journal.sent_pieces import SentObject

_CHECKPOINT: Final = r"([1-9][0-9]*)"


@changeable
class CheckpointContent:
    """The content of the journal of a checkpoint.

    Attributes:
        folder: The folder of the checkpoint.
        fingerprint: Fingerprint of the latest attempt; ``None`` if it cannot be read.
        attempts: The runs that worked on it, in order.
        table: The settled spans.
        kept_from: As `Manifest.kept_from`.
        retries: Whether the checkpoint was created to retry only failed records.
        result: Digest of the published result that the journal belongs to; empty if there is none.
        digests: Whether outcomes of single records can be found by their digests.
        redo: Of a checkpoint in which only the records are open that a condition chose: the
            ``condition``, and ``run`` and digest of the ``result`` that it chose them from.
        format: The format of the journal; empty if it is missing or unknown.
        started: When the first attempt began, as ISO 8601; empty if it is not known.
        segments_of: Return the segments of the checkpoint in a folder.
    """

    folder: Path
    fingerprint: RunFingerprint | None
    attempts: list[str]
    table: SpanTable
    kept_from: list[dict[str, str]] = field(default_factory=list)
    retries: bool = False
    result: str = ""
    digests: bool = False
    redo: dict[str, str] = field(default_factory=dict)
    format: str = ""
    started: str = ""
    segments_of: Callable[[Path], Segments] = Segments

    @property
    def segments(self) -> Segments:
        """The segments with the outputs."""
        return self.segments_of(self.folder)

    @property
    def foreign(self) -> bool:
        """Whether another version of this package wrote it, in a format that is not read."""
        return self.format != "" and not is_read(self.format)

    @classmethod
    def read(cls, folder: Path, name: str = JOURNAL) -> "CheckpointContent":
        """Read a journal. Damaged entries are left out; a missing journal is empty."""
        content = cls(folder=folder, fingerprint=None, attempts=[], table=SpanTable())
        for entry in read_journal(folder / name):
            if isinstance(entry, SpansEntry):
                content.table.add(entry)
                content.digests = content.digests or entry.digests is not None
            elif isinstance(entry, ReopenedEntry):
                content.table = content.table.without(entry.starts)
                content.retries = content.retries or entry.retries
            elif isinstance(entry, AttemptEntry):
                content.add_attempt(entry)
        content.format = content.format or format_of(folder / name)
        if content.foreign:
            content.table = SpanTable()
        content.table = content.table.without_overlaps()
        return content

    def add_attempt(self, entry: AttemptEntry) -> None:
        """Add an attempt. A malformed one makes the fingerprint unknown."""
        self.format = self._format_of(entry.content or {})
        if self.foreign:
            self.fingerprint, self.attempts = None, _runs_in(entry.content or {})
            return
        try:
            attempt = entry.content or {}
            self.fingerprint = RunFingerprint.from_json(attempt["fingerprint"])
            self.attempts = [str(run) for run in attempt["attempts"]]
            self.kept_from = [dict(run) for run in attempt.get("kept_from", ())]
            self.retries = attempt.get("retries") is True
            self.result = str(attempt.get("result", ""))
            self.started = str(attempt.get("started", ""))
            self.redo = dict(attempt.get("redo", {}))
            add_counts(self.table.counts, attempt.get("counts", {}))
        except (ValueError, KeyError, TypeError, AttributeError):
            self.fingerprint = None

    def _format_of(self, attempt: dict[str, Any]) -> str:
        """Return the format after an attempt. One that is not read stays that of the journal."""
        if self.foreign:
            return self.format
        others = other_parts(attempt.get("fingerprint"))
        more = f" with {', '.join(others)}" if others else ""
        return format_in(attempt) + more or self.format

    def attempt_entry(self, result: str = "") -> dict[str, Any]:
        """Return the attempts as the journal holds them.

        Args:
            result: Digest of the published result that the attempts have made, if any.
        """
        return {
            "attempts": self.attempts,
            "fingerprint": self.fingerprint.to_json() if self.fingerprint else None,
            "kept_from": self.kept_from,
            "retries": self.retries,
            "result": result,
            "started": self.started,
            **({"redo": self.redo} if self.redo and not result else {}),
        }

    def kept_runs(self, fingerprint: RunFingerprint) -> list[dict[str, str]]:
        """Return `Manifest.kept_from` for a run with this fingerprint that continues here."""
        before = self.fingerprint
        if before is None or not set(before.differences(fingerprint)) & set(CHANGEABLE):
            return self.kept_from
        kept = {part: getattr(before, part) for part in CHANGEABLE}
        return [*self.kept_from, {"run": self.attempts[-1], **kept}]

    def begun_by(self, run: str, fingerprint: RunFingerprint) -> "CheckpointContent":
        """Return the content after another run has continued it."""
        kept_from = self.kept_runs(fingerprint) if self.table.records else []
        attempts = [*self.attempts, run]
        return replace(self, fingerprint=fingerprint, attempts=attempts, kept_from=kept_from)


def _runs_in(attempt: dict[str, Any]) -> list[str]:
    """Return the runs in an attempt of another format, as far as they are known."""
    runs = attempt.get("attempts", attempt.get("run"))
    return [str(run) for run in (runs if isinstance(runs, list) else [runs]) if run]


class Checkpoint:
    """A checkpoint that this run writes to.

    Args:
        content: The content to continue, or the content of a new checkpoint.
        fingerprint: Fingerprint of this run.
        run: Name of this run.
        flush_seconds: How much finished work may be lost to a power failure.
        open_journal: Return the writer of the journal at a path.

    Attributes:
        content: The content of the journal; its table is that of the start.
        table: The settled spans.
        resumed_records: Number of records that earlier runs settled.
        resumed_from: These runs.
        segments: The segments with the outputs.
        synced: Whether settled records of this run may survive a power loss.
    """

    def __init__(
        self,
        content: CheckpointContent,
        fingerprint: RunFingerprint,
        run: str,
        flush_seconds: float,
        open_journal: Callable[[Path], JournalWriter] = JournalWriter,
    ) -> None:
        make_folder(content.folder)
        content = content.begun_by(run, fingerprint)
        self.content = content
        self._fingerprint = fingerprint
        self.folder = content.folder
        self.table = content.table
        self.count_resumed()
        self._dirty: set[int] = set()
        self._unsynced_parents = [self.folder.parent, self.folder.parent.parent]
        self._next_sync: float | None = None
        self._syncing = threading.Lock()
        self._sync_fault: StorageError | None = None
        self._closed = False
        self._journal = open_journal(self.folder / JOURNAL)
        self.segments = self._journal.segments
        self.synced = not self._journal.on_disk
        self._flush_seconds = max(flush_seconds, self._journal.least_seconds)
        self._journal.attempt(content.attempt_entry())
        self._next_segment = self.segments.latest() + 1

    def count_resumed(self) -> None:
        """Count the records that are settled now as those of earlier runs."""
        self.resumed_records = self.table.records
        self.resumed_from = (
            list(dict.fromkeys(self.content.attempts[:-1])) if self.resumed_records else []
        )

    def use_outcomes_of(self, others: Sequence[CheckpointContent]) -> None:
        """Journal that outcomes of other checkpoints are used, before the first one is settled.

        Args:
            others: All these checkpoints, the earliest first.
        """
        content = self.content
        *earlier, run = content.attempts
        runs = list(dict.fromkeys(other.attempts[-1] for other in others))
        kept = [kept for other in others for kept in other.kept_runs(self._fingerprint)]
        content.attempts = [*runs, *(attempt for attempt in earlier if attempt not in runs), run]
        content.kept_from = [*kept, *(source for source in content.kept_from if source not in kept)]
        self._journal.attempt(content.attempt_entry())

    def take_segment_number(self) -> int:
        """Return the number of a new segment."""
        self._next_segment += 1
        return self._next_segment - 1

    def take_segment_numbers(self, count: int) -> range:
        """Return the numbers of new segments for a writer on another machine.

        That machine may write to them after this run has ended. Therefore an empty file takes the
        last number: later runs count from there.
        """
        first = self._next_segment
        self._next_segment += count
        SegmentWriter(self.folder, self._next_segment - 1).close()
        return range(first, self._next_segment - 1)

    def new_segment(self) -> SegmentWriter:
        """Return the writer of a new segment."""
        return SegmentWriter(self.folder, self.take_segment_number())

    def take_result(self, number: int, take: Callable[[Path], bool]) -> bool:
        """Use the published result as a segment; return whether it is used.

        Args:
            number: The number of the segment.
            take: As `Claim.take_result`.
        """
        taken = take(segment_path(self.folder, number))
        if taken:
            self._journal.taken()
            self._next_segment = max(self._next_segment, number + 1)
        return taken

    def journal(self, entry: SpansEntry) -> None:
        """Journal spans whose outputs are stored."""
        self._journal.spans(entry)
        self.table.add(entry)
        self._dirty.add(entry.segment)

    def note_sent(self, objects: "Iterable[SentObject]") -> None:
        """Note that agents have put outputs in a bucket; call it before `journal` with them."""
        self._journal.sent(objects)

    def sync_if_due(self, now: float) -> None:
        """Make settled spans survive a power loss, every ``flush_seconds`` or less often.

        Outputs that a store is to get are sent earlier once they are many.

        Args:
            now: A monotonic time in seconds.
        """
        if self._next_sync is None:  # a short run ends before a sync is due
            self._next_sync = now + self._flush_seconds
        if self._sync_fault is not None:
            self.check_synced()
        many = self._journal.unsent_bytes >= SEND_BYTES
        if not self._dirty or (now < self._next_sync and not many):
            return
        if not self._syncing.locked():
            self._next_sync = now + self._flush_seconds
            background.run(partial(self._sync_beside, now))

    @property
    def sends(self) -> bool:
        """Whether a sync sends outputs to a store; see `JournalWriter.sends`."""
        return self._journal.sends

    @property
    def full(self) -> bool:
        """Whether so many outputs wait to be sent that no more should be made."""
        return self._journal.unsent_bytes > MOST_UNSENT_BYTES

    def check_synced(self) -> None:
        """Wait for background syncs, and check that none has failed.

        Raises:
            StorageError: A sync failed: the disk may have lost settled records.
        """
        background.finish()
        if self._sync_fault is not None:
            raise self._sync_fault

    def _sync_beside(self, due: float) -> None:
        began = time.monotonic()
        try:
            self.sync()
        except StorageError as error:
            self._sync_fault = error
        spent = time.monotonic() - began
        self._next_sync = due + max(self._flush_seconds, spent * self._journal.sync_share)

    def sync(self) -> None:
        """Make every settled span survive a power loss: sync outputs, then journal, then names."""
        with self._syncing:
            if self._closed:
                return
            self.synced = True
            dirty, self._dirty = self._dirty, set()
            self._journal.sync(segment_path(self.folder, number) for number in dirty)
            if self._journal.on_disk:
                self._sync_names()

    def _sync_names(self) -> None:
        """Sync the names of journal and segments, and that of the folder."""
        with storage(self.folder, "sync"):
            sync_folder(self.folder)
            while self._unsynced_parents:
                sync_folder(self._unsynced_parents[0])
                del self._unsynced_parents[0]

    def reject(self, starts: list[int]) -> None:
        """Forget spans whose output is damaged; they are open again."""
        self.table = self.table.without(starts)

    def reopen(self, entry: ReopenedEntry, parts: SpansEntry | None) -> None:
        """Replace spans in one step. Records that the new spans do not hold are open again.

        Args:
            entry: The replaced spans.
            parts: The new spans; ``None`` for none.
        """
        self.table = self.table.without(entry.starts)
        if parts is not None:
            self.table.add(parts)
            self._dirty.add(parts.segment)
        self._journal.reopened(entry, parts)
        self.content.retries = self.content.retries or entry.retries
        self.count_resumed()

    def close(self) -> None:
        """Close the journal. Settled records stay on disk."""
        with self._syncing:
            self._closed = True
            self._journal.close()


def existing(
    folder: Path, segments_of: Callable[[Path], Segments] = Segments
) -> list[CheckpointContent]:
    """Return the checkpoints below ``folder``, newest first.

    Args:
        folder: The folder.
        segments_of: Return the segments of the checkpoint in a folder.
    """
    if not folder.is_dir():
        return []
    with storage(folder, "list the checkpoints"):
        contents = [CheckpointContent.read(path) for path in folders(folder)]
    return [replace(content, segments_of=segments_of) for content in contents]


def folders(folder: Path) -> list[Path]:
    """Return the folders of the checkpoints below ``folder``, newest first."""
    numbers = sorted(_numbers(folder), reverse=True)
    return [folder / str(number) for number in numbers]


def fresh(folder: Path) -> CheckpointContent:
    """Return the content of a new checkpoint below ``folder``; nothing is written yet."""
    new = folder / str(max(_numbers(folder), default=0) + 1)
    return CheckpointContent(folder=new, fingerprint=None, attempts=[], table=SpanTable())


def _numbers(folder: Path) -> list[int]:
    """Return the numbers of the checkpoints below ``folder``; other names are skipped."""
    matches = [re.fullmatch(_CHECKPOINT, path.name) for path in folder.glob("*")]
    return [int(match[1]) for match in matches if match]
