"""Job: the records of one attempt, and the methods by which backends settle them."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

from dagster_dataops.byte_ranges import Readable, opened
from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.journal.span import Span, SpansEntry
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.checkpoints.journal.stored_outcomes import digests_in
from dagster_dataops.checkpoints.resume.checkpoint_match import holds_settled
from dagster_dataops.checkpoints.resume.reopen_failed import first_failure
from dagster_dataops.configuration import shown_place
from dagster_dataops.datasets.batches import BatchStarts
from dagster_dataops.datasets.lines import Interval, LineCounter, content_interval, count_records
from dagster_dataops.errors import (
    OutageError,
    RecordError,
    WorkerError,
)
from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.progress import ProgressState
from dagster_dataops.execution.records.record_failures import Failure, failure_text
from dagster_dataops.operators.options.concurrency_modes import MODES
from dagster_dataops.operators.outcomes.record_context import shown_counts
from dagster_dataops.quantities import counted


class Job:
    """The records of one attempt.

    Args:
        attempt: Of a record operator, with one input.
        checkpoint: Receives the settled spans.

    Attributes:
        attempt: The attempt.
        context: How it is made.
        operator: The operator.
        settings: Its settings.
        name: Its qualified name.
        dataset: Its input.
        content: Bytes of the input that hold lines.
        todo: The unsettled intervals, in order.
        checkpoint: Receives the settled spans.
        tick: Show progress, sync the checkpoint and check for a stop request; see `Ticker.tick`.
        growing: Whether records may be added; never.
        last_failed: After an outage: byte positions of the failed records after which none
            succeeded; ``None`` for all failed records.
    """

    def __init__(self, attempt: Attempt, checkpoint: Checkpoint) -> None:
        self.attempt = attempt
        self.context = attempt.context
        self.operator = attempt.operator
        self.settings = attempt.settings
        self.name = attempt.name
        (self.dataset,) = attempt.inputs
        self.content = content_interval(self.dataset.path)
        self.checkpoint = attempt.open_checkpoint(checkpoint)
        self.todo = checkpoint.table.gaps(self.content)
        self.tick = attempt.ticker(self.state).tick
        self.growing = False
        self.last_failed: set[int] | None = None

    @property
    def batches(self) -> bool:
        """Whether the operator takes batches of records."""
        return bool(self.operator.__dataops__.spec.batch)

    @property
    def check_input(self) -> bool:
        """Whether spans need a checksum of their input, because the dataset has no digest."""
        return self.dataset.fingerprint is None

    @property
    def keeps_outcomes(self) -> bool:
        """Whether every record must be a separate span, so that its digest identifies it."""
        return self.settings.reuse_outcomes

    @property
    def folder(self) -> Path:
        """The folder of the checkpoint."""
        return self.checkpoint.folder

    @property
    def unshared(self) -> tuple[int, ...]:
        """Descriptors that forked workers must close: that of the folder's lock."""
        return (self.attempt.lock.descriptor,)

    @property
    def resources(self) -> ExitStack:
        """Closed when the result is published, or when the attempt fails."""
        return self.attempt.resources

    def batch_starts(self, descriptor: Readable) -> BatchStarts | None:
        """Return where ranges may begin if the operator takes batches; otherwise ``None``."""
        if not self.batches:
            return None
        return BatchStarts.of(descriptor, self.content, self.settings.batch_size)

    def take_segment_number(self) -> int:
        """Return the number of a new segment."""
        return self.checkpoint.take_segment_number()

    def take_orders(self) -> NoReturn:
        """Never called: the work of a job does not grow."""
        raise NotImplementedError

    def finish(self, start: int, end: int) -> None:
        """Do nothing: the journal lists the settled records."""

    def note(self, text: str) -> None:
        """Show a line to the user."""
        self.context.progress.note(text)

    def settle(
        self, segment: int, offset: int, spans: list[Span], notes: Sequence[SpanNotes | None] = ()
    ) -> None:
        """Journal finished spans; their outputs start at ``offset`` of ``segment``, in a row."""
        digests = digests_in(self.dataset.path, spans) if self.keeps_outcomes else None
        self.checkpoint.settle(SpansEntry.of(segment, offset, spans, digests, notes))

    def state(self) -> ProgressState:
        """Return the progress of the job."""
        table = self.checkpoint.table
        return ProgressState(
            records=table.records,
            failed=table.failed,
            input_bytes=table.input_bytes,
            total_bytes=self.content.end - self.content.start,
            total_records=self.dataset.rows,
            resumed=self.checkpoint.resumed_records,
            counts=shown_counts(table.counts),
        )

    def check_input_unchanged(self) -> None:
        """Check that the input is the same file as at the start.

        If only its links or permissions may have changed, the checksums of the settled spans
        decide.

        Raises:
            InputError: The file was replaced or changed while it was read.
        """
        (stamp,), now = self.attempt.stamps, self.dataset.stamp()
        if now == stamp:
            return
        touched = self.check_input and now.resembles(stamp)
        if touched and holds_settled(self.dataset, self.checkpoint.table):
            return
        self.dataset.check_unchanged(stamp)

    def check_complete(self) -> None:
        """Check that every record has an outcome; blank lines need none.

        Raises:
            WorkerError: The backend left records unprocessed.
        """
        gaps = self.checkpoint.table.gaps(self.content)
        if not gaps:
            return
        with opened(self.dataset.path) as source:
            undone = sum(count_records(source, gap) for gap in gaps)
        if undone:
            reason = f"not processed: {counted(undone, 'records')}; run again to continue with them"
            raise WorkerError(self.name, reason)

    def check_any_succeeded(self) -> None:
        """Check that a record succeeded, unless the settings allow all records to fail.

        Raises:
            OutageError: All records failed.
        """
        table = self.checkpoint.table
        if not self.settings.stop_after_failures or not 0 < table.failed == table.records:
            return
        example = "Their exceptions cannot be read back from disk."
        first = first_failure(self.checkpoint.folder, table)
        if first is not None:
            index, line = self._place_of(first.offset)
            example = (
                f"The first, record {index} ({shown_place(self.dataset.path)}, line {line}): "
                + failure_text(first.row["exception"], first.row["message"], first.row["traceback"])
            )
        raise OutageError(self.name, f"all records failed ({table.failed:,})", example)

    def error_of(self, failure: Failure) -> RecordError | OutageError:
        """Return the error for the failure that ended the run."""
        if self.settings.ignore_errors:  # only the breaker ends the run then
            return self.outage_of(failure)
        index, line = self._place_of(failure.offset)
        return RecordError(
            self.name,
            index,
            shown_place(self.dataset.path),
            line,
            failure.exception,
            failure.message,
            failure.traceback_text,
        )

    def outage_of(self, failure: Failure) -> OutageError:
        """Return the error of a run that too many consecutive calls with ``failure`` ended."""
        mode = MODES[self.settings.concurrency_mode]
        where = " in one worker process" if mode.separate_processes else ""
        found = (
            f"{self.settings.stop_after_failures:,} calls failed with {failure.exception}{where}, "
            f"and none succeeded in between; other records of {shown_place(self.dataset.path)} "
            "were not tried"
        )
        text = failure_text(failure.exception, failure.message, failure.traceback_text)
        return OutageError(self.name, found, f"The last of these failures: {text}")

    def _place_of(self, offset: int) -> tuple[int, int]:
        """Return index, counted from 0, and line, counted from 1, of the record at ``offset``."""
        with opened(self.dataset.path) as source:
            line = LineCounter(source).line_at(offset)
            return count_records(source, Interval(self.content.start, offset)), line
