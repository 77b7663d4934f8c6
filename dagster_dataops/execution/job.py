"""Job: the records of one attempt, and the methods by which backends settle them."""

from collections.abc import Sequence

from typing_extensions import override

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.journal.span import Span, SpansEntry
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.checkpoints.journal.stored_outcomes import digests_in
from dagster_dataops.checkpoints.resume.checkpoint_match import holds_settled
from dagster_dataops.checkpoints.resume.reopen_failed import first_failure
from dagster_dataops.datasets.batches import BatchStarts
from dagster_dataops.datasets.dataset import CHANGED
from dagster_dataops.datasets.lines import Interval, LineCounter, content_interval, count_records
from dagster_dataops.errors import (
    InputError,
    OutageError,
    RecordError,
    UnprocessedError,
)
from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.progress import ProgressState
from dagster_dataops.execution.records.record_failures import Failure, failure_text
from dagster_dataops.execution.settlement import Settlement
from dagster_dataops.operators.options.concurrency_modes import MODES
from dagster_dataops.operators.options.signature import nearest
from dagster_dataops.operators.outcomes.record_context import shown_counts
from dagster_dataops.places.opening import opened
from dagster_dataops.places.range_source import Readable
from dagster_dataops.places.shown_places import shown_place
from dagster_dataops.quantities import counted


class Job(Settlement):
    """The records of one attempt.

    Args:
        attempt: Of a record operator, with one input.
        checkpoint: Receives the settled spans.

    Attributes:
        attempt: The attempt.
        context: How it is made.
        content: Bytes of the input that hold lines.
        checkpoint: Receives the settled spans.
    """

    def __init__(self, attempt: Attempt, checkpoint: Checkpoint) -> None:
        (dataset,) = attempt.inputs
        super().__init__(attempt.operator, dataset, checkpoint.folder, attempt.resources)
        self.attempt = attempt
        self.context = attempt.context
        self.content = content_interval(dataset.location)
        self.checkpoint = attempt.open_checkpoint(checkpoint)
        self.todo = checkpoint.table.gaps(self.content)
        self._ticker = attempt.ticker(self.state)

    @property
    @override
    def unshared(self) -> tuple[int, ...]:
        return (self.attempt.lock.descriptor,)

    @override
    def batch_starts(self, descriptor: Readable) -> BatchStarts | None:
        if not self.batches:
            return None
        return BatchStarts.of(descriptor, self.content, self.settings.batch_size)

    @override
    def take_segment_number(self) -> int:
        return self.checkpoint.take_segment_number()

    @override
    def tick(self) -> None:
        self._ticker.tick()

    @override
    def note(self, text: str) -> None:
        self.context.progress.note(text)

    @override
    def settle(
        self, segment: int, offset: int, spans: list[Span], notes: Sequence[SpanNotes | None] = ()
    ) -> None:
        digests = digests_in(self.dataset.location, spans) if self.keeps_outcomes else None
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

    @override
    def check_input_unchanged(self) -> None:
        """Check that the input is the same file as at the start.

        If only its links or permissions may have changed, or a change may be hidden by the clock of
        its file system, the checksums of the settled spans decide.

        Raises:
            InputError: The file was replaced or changed while it was read.
        """
        (stamp,), now, read_ns = self.attempt.stamps, self.dataset.stamp(), self.attempt.read_ns
        compared = self.check_input and now.resembles(stamp)
        if compared and (now != stamp or stamp.hides_changes(read_ns)):
            if holds_settled(self.dataset, self.checkpoint.table):
                return
            raise InputError(shown_place(self.dataset.location), CHANGED)
        self.dataset.check_unchanged(stamp, read_ns)

    def check_complete(self) -> None:
        """Check that every record has an outcome; blank lines need none.

        Raises:
            UnprocessedError: The backend left records unprocessed.
        """
        gaps = self.checkpoint.table.gaps(self.content)
        if not gaps:
            return
        with opened(self.dataset.location) as source:
            undone = sum(count_records(source, gap) for gap in gaps)
        if undone:
            reason = f"not processed: {counted(undone, 'records')}; run again to continue with them"
            raise UnprocessedError(self.name, reason)

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
                f"The first, record {index} ({shown_place(self.dataset.location)}, line {line}): "
                + failure_text(first.row["exception"], first.row["message"], first.row["traceback"])
                + self._hint(first.row["exception"], first.row["message"])
            )
        raise OutageError(self.name, f"all records failed ({table.failed:,})", example)

    @override
    def error_of(self, failure: Failure) -> RecordError | OutageError:
        if self.settings.ignore_errors:  # only the breaker ends the run then
            return self.outage_of(failure)
        index, line = self._place_of(failure.offset)
        return RecordError(
            self.name,
            index,
            shown_place(self.dataset.location),
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
            f"and none succeeded in between; other records of {shown_place(self.dataset.location)} "
            "were not tried"
        )
        text = failure_text(failure.exception, failure.message, failure.traceback_text)
        text += self._hint(failure.exception, failure.message)
        return OutageError(self.name, found, f"The last of these failures: {text}")

    def _hint(self, exception: str, message: str) -> str:
        """Return the columns of the first record if it lacks the key of a `KeyError`, else ""."""
        records = self.dataset.head(1) if exception == "KeyError" else []
        key = message.strip("'\"")
        if not records or key in records[0]:
            return ""
        near = nearest(key, records[0])
        hint = f" Did you mean {near!r}?" if near else ""
        return f"\nThe first record has: {', '.join(records[0]) or 'no columns'}.{hint}"

    def _place_of(self, offset: int) -> tuple[int, int]:
        """Return index, counted from 0, and line, counted from 1, of the record at ``offset``."""
        with opened(self.dataset.location) as source:
            line = LineCounter(source).line_at(offset)
            return count_records(source, Interval(self.content.start, offset)), line
