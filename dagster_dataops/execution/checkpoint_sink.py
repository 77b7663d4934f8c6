"""CheckpointSink: writes the outcomes of an attempt on this machine to its checkpoint."""

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.journal.span import Span, SpansEntry
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.datasets.dataset import CHANGED
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.datasets.file_values.file_reads import COUNT as READ_FILES
from dagster_dataops.datasets.file_values.file_reads import FileReadLog, check_unchanged
from dagster_dataops.datasets.lines import Interval, LineCounter, count_records
from dagster_dataops.errors import (
    InputError,
    OutageError,
    RecordError,
    UnprocessedError,
)
from dagster_dataops.execution.node_attempt import NodeAttempt
from dagster_dataops.execution.progress import ProgressState
from dagster_dataops.execution.sink import Sink
from dagster_dataops.execution.work_list import WorkList
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.options.concurrency_modes import mode_named
from dagster_dataops.operators.options.signature import nearest
from dagster_dataops.operators.outcomes.record_context import shown_counts

if TYPE_CHECKING:
    from dagster_dataops.checkpoints.journal.sent_pieces import SentPlace
    from dagster_dataops.execution.records.record_failures import Failure


_LOOK_SECONDS: Final = 0.02


class CheckpointSink(Sink):
    """Writes the outcomes of an attempt on this machine to the checkpoint of its node.

    Args:
        attempt: The attempt.
        work: The open intervals of its input.
        checkpoint: Receives the finished spans.
    """

    def __init__(self, attempt: NodeAttempt, work: WorkList, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint.folder)
        self.attempt = attempt
        self.work = work
        self.checkpoint = attempt.open_checkpoint(checkpoint)
        self._ticker = attempt.ticker(self.state)
        if self.checkpoint.sends:
            from dagster_dataops.checkpoints.journal.sent_pieces import room_of_worker

            self.room = room_of_worker(attempt.settings.max_workers)
        self._keeps_outcomes = attempt.settings.reuse_outcomes
        self._keeper = attempt.operator.__dataops__.keeper
        self._reads = FileReadLog(checkpoint.folder)
        attempt.resources.callback(self._reads.close)

    @override
    def take_segment_number(self) -> int:
        return self.checkpoint.take_segment_number()

    @override
    def tick(self) -> None:
        if self.full:
            self.checkpoint.sync_if_due(time.monotonic())
        self._ticker.tick()
        self.full = self.checkpoint.full

    @override
    def await_room(self) -> None:
        while self.full:
            if threading.current_thread() is self.thread:  # an interrupt ends the wait
                time.sleep(_LOOK_SECONDS)
                self.tick()
            else:  # the thread of the workplace may have ended
                self.checkpoint.sync()
                self.full = self.checkpoint.full

    @override
    def journal(
        self, segment: int, offset: int, spans: list[Span], notes: Sequence[SpanNotes | None] = ()
    ) -> None:
        if self._keeper is not None:
            self._keeper.sync()
        if self._reads.lines:
            with storage(self.folder, "write which files were read"):
                self._reads.write()
        location, digests = self.work.dataset.location, None
        if self._keeps_outcomes:
            from dagster_dataops.checkpoints.journal.stored_outcomes import digests_in

            digests = digests_in(location, spans, notes)
        self.checkpoint.journal(SpansEntry.of(segment, offset, spans, digests, notes))
        self.full = self.checkpoint.full

    def sent_place(self) -> "SentPlace | None":
        """Return where agents put outputs; ``None`` if they write to the folder."""
        return self.attempt.lock.sent_place()

    def state(self) -> ProgressState:
        """Return the progress of the attempt."""
        table = self.checkpoint.table
        return ProgressState(
            records=table.records,
            failed=table.failed,
            input_bytes=table.input_bytes,
            total_bytes=self.work.content.end - self.work.content.start,
            total_records=self.work.dataset.rows,
            resumed=self.checkpoint.resumed_records,
            counts=shown_counts(table.counts),
        )

    @override
    def check_input_unchanged(self) -> None:
        """Check that the input is the same file as at the start.

        If only its links or permissions may have changed, or a change may be hidden by the clock of
        its file system, the checksums of the settled spans decide.

        Raises:
            InputError: The file was replaced or changed while it was read.
        """
        (stamp,), read_ns = self.attempt.stamps, self.attempt.read_ns
        now = self.work.dataset.stamp()
        compared = self.work.checks_input and now.resembles(stamp)
        if compared and (now != stamp or stamp.hides_changes(read_ns)):
            from dagster_dataops.checkpoints.resume.checkpoint_match import holds_settled  # rare

            if holds_settled(self.work.dataset, self.checkpoint.table):
                return
            raise InputError(str(self.work.dataset.location), CHANGED)
        self.work.dataset.check_unchanged(stamp, read_ns)

    def check_files_unchanged(self) -> None:
        """Check that no file was replaced that was read, and that no record identifies.

        Raises:
            FileChangedError: One was.
        """
        if READ_FILES in self.checkpoint.table.counts:
            check_unchanged(self.folder)

    def check_complete(self) -> None:
        """Check that every record has one outcome; blank lines need none.

        Raises:
            UnprocessedError: The workplace left records unprocessed, or wrote outcomes twice.
        """
        table, content = self.checkpoint.table, self.work.content
        gaps = table.gaps(content)
        known = table.input_bytes + sum(end - start for start, end in gaps)
        if known != content.end - content.start:
            mode = self.attempt.settings.concurrency_mode
            reason = f"mode {mode!r} wrote the outcomes of some records twice; nothing is published"
            raise UnprocessedError(self.attempt.name, reason)
        if not gaps:
            return
        with opened(self.work.dataset.location) as source:
            undone = sum(count_records(source, gap) for gap in gaps)
        if undone:
            reason = f"not processed: {counted(undone, 'records')}; run again to continue with them"
            raise UnprocessedError(self.attempt.name, reason)

    def check_any_succeeded(self) -> None:
        """Check that a record succeeded, unless the settings allow all records to fail.

        Raises:
            OutageError: All records failed.
        """
        table = self.checkpoint.table
        if not self.attempt.settings.stop_after_failures or not 0 < table.failed == table.records:
            return
        from dagster_dataops.checkpoints.resume.reopen_failed import first_failure  # rare
        from dagster_dataops.execution.records.record_failures import failure_text

        example = "Their exceptions cannot be read back from disk."
        first = first_failure(self.checkpoint)
        if first is not None:
            index, line = self._place_of(first.offset)
            place = str(self.work.dataset.location)
            example = (
                f"The first, record {index} ({place}, line {line}): "
                + failure_text(first.row["exception"], first.row["message"], first.row["traceback"])
                + self._hint(first.row["exception"], first.row["message"])
            )
        raise OutageError(self.attempt.name, f"all records failed ({table.failed:,})", example)

    @override
    def error_of(self, failure: "Failure") -> RecordError | OutageError:
        if self.attempt.settings.ignore_errors:  # only the breaker ends the run then
            return self.outage_of(failure)
        index, line = self._place_of(failure.offset)
        return RecordError(
            self.attempt.name,
            index,
            str(self.work.dataset.location),
            line,
            failure.exception,
            failure.message,
            failure.traceback_text,
        )

    @override
    def outage_of(self, failure: "Failure") -> OutageError:
        settings = self.attempt.settings
        mode = mode_named(settings.concurrency_mode)
        where = " in one worker process" if mode.separate_processes else ""
        place = str(self.work.dataset.location)
        problem = (
            f"{settings.stop_after_failures:,} calls failed with {failure.exception}{where}, "
            f"and none succeeded in between; other records of {place} were not tried"
        )
        from dagster_dataops.execution.records.record_failures import failure_text  # rare

        text = failure_text(failure.exception, failure.message, failure.traceback_text)
        text += self._hint(failure.exception, failure.message)
        return OutageError(self.attempt.name, problem, f"The last of these failures: {text}")

    def _hint(self, exception: str, message: str) -> str:
        """Return the columns of the first record if it lacks the key of a `KeyError`, else ""."""
        records = self.work.dataset.head(1) if exception == "KeyError" else []
        key = message.strip("'\"")
        if not records or key in records[0]:
            return ""
        near = nearest(key, records[0])
        hint = f" Did you mean {near!r}?" if near else ""
        return f"\nThe first record has: {', '.join(records[0]) or 'no columns'}.{hint}"

    def _place_of(self, offset: int) -> tuple[int, int]:
        """Return index, counted from 0, and line, counted from 1, of the record at ``offset``."""
        with opened(self.work.dataset.location) as source:
            line = LineCounter(source).line_at(offset)
            return count_records(source, Interval(self.work.content.start, offset)), line
