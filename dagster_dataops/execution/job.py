"""Job: the unsettled records of one operator, and the methods by which backends settle them."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.checkpoints.journal.stored_outcomes import digests_in
from dagster_dataops.checkpoints.resume.checkpoint_match import holds_settled
from dagster_dataops.checkpoints.resume.reopen_failed import first_failure
from dagster_dataops.datasets.dataset import FileState, JsonlDataset
from dagster_dataops.datasets.lines import Interval, LineCounter, count_records
from dagster_dataops.errors import (
    OutageError,
    RecordError,
    WorkerError,
)
from dagster_dataops.execution.progress import Progress, ProgressState
from dagster_dataops.execution.records.record_failures import Failed, Failure, told
from dagster_dataops.execution.records.settle import Interrupts
from dagster_dataops.execution.ticker import Ticker
from dagster_dataops.operators.concurrency_modes import MODES
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.settings import ResolvedSettings


@dataclass
class Job:
    """One operator over the unsettled part of one dataset.

    Attributes:
        operator: The operator.
        settings: Its settings.
        dataset: Its input.
        stamp: State of the input file before the first read.
        content: Bytes of the input that hold lines.
        todo: The unsettled intervals, in order.
        checkpoint: Receives the settled spans.
        progress: Receives the state of the job.
        should_stop: Called once a second; returns a reason to stop, or ``None``.
        interrupts: Exceptions that signals raise in the main thread.
        unshared: Descriptors that forked workers must close, such as that of the folder's lock.
        last_failed: After an outage: byte positions of the failed records after which none
            succeeded; ``None`` for all failed records.
        afterwards: Work that a backend leaves behind; it ends before the attempt does.
    """

    operator: Operator
    settings: ResolvedSettings
    dataset: JsonlDataset
    stamp: FileState
    content: Interval
    todo: list[Interval]
    checkpoint: Checkpoint
    progress: Progress
    should_stop: Callable[[], str | None]
    interrupts: Interrupts
    unshared: tuple[int, ...] = ()
    last_failed: "set[int] | None" = None
    afterwards: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self._ticker = Ticker(
            self.name, self.state, self.progress, self.should_stop, self.checkpoint
        )

    @property
    def name(self) -> str:
        """Qualified name of the operator."""
        return self.operator.__dataops__.spec.qualified_name

    @property
    def check_input(self) -> bool:
        """Whether spans need a checksum of their input, because the dataset has no digest."""
        return self.dataset.fingerprint is None

    @property
    def keeps_outcomes(self) -> bool:
        """Whether every record must be a span of its own, so that its digest identifies it."""
        return self.settings.reuse_outcomes

    def settle(
        self, segment: int, offset: int, spans: list[Span], notes: Sequence[SpanNotes | None] = ()
    ) -> None:
        """Journal finished spans, whose outputs start at ``offset`` of ``segment``, in a row."""
        digests = digests_in(self.dataset.path, spans) if self.keeps_outcomes else None
        self.checkpoint.settle(segment, offset, spans, digests, notes if any(notes) else ())

    def tick(self) -> None:
        """Show progress, sync the checkpoint and check for a stop request; see `Ticker.tick`."""
        self._ticker.tick()

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
        )

    def check_input_unchanged(self) -> None:
        """Check that the input is the file that it was at the start.

        If only its links or rights may have changed, the checksums of the settled spans decide.

        Raises:
            InputError: The file was replaced or changed while it was read.
        """
        now = self.dataset.stamp()
        touched = now != self.stamp and now.resembles(self.stamp)
        if touched and self.check_input and holds_settled(self.dataset, self.checkpoint.table):
            return
        self.dataset.check_unchanged(self.stamp)

    def check_complete(self) -> None:
        """Check that every record has an outcome; blank lines need none.

        Raises:
            WorkerError: The backend has left records undone.
        """
        gaps = self.checkpoint.table.gaps(self.content)
        if not gaps:
            return
        with self.dataset.path.open("rb") as file:
            undone = sum(count_records(file.fileno(), gap) for gap in gaps)
        if undone:
            reason = f"{undone:,} records were left undone; run again to go on with them"
            raise WorkerError(self.name, reason)

    def check_any_succeeded(self) -> None:
        """Check that a record succeeded, unless the settings allow that all fail.

        Raises:
            OutageError: All records failed.
        """
        table = self.checkpoint.table
        if not self.settings.stop_after_failures or not 0 < table.failed == table.records:
            return
        example = "What they failed with cannot be read back."
        first = first_failure(self.checkpoint.folder, table)
        if first is not None:
            index, line = self._place_of(first.place.offset)
            example = f"The first, record {index} ({self.dataset.path}, line {line}): " + told(
                first.row["exception"], first.row["message"], first.row["traceback"]
            )
        raise OutageError(self.name, f"all records failed ({table.failed:,})", example)

    def error_of(self, failed: Failed) -> RecordError | OutageError:
        """Return the error for the failure that ended the run."""
        failure = failed.failure
        if self.settings.ignore_errors:  # then only the breaker ends a run
            return self.outage_of(failure)
        index, line = self._place_of(failed.offset)
        return RecordError(
            self.name,
            index,
            str(self.dataset.path),
            line,
            failure.exception,
            failure.message,
            failure.traceback_text,
        )

    def outage_of(self, failure: Failure) -> OutageError:
        """Return the error of a run whose calls failed one after the other with ``failure``."""
        mode = MODES[self.settings.concurrency_mode]
        where = " in one worker process" if mode.separate_processes else ""
        found = (
            f"{self.settings.stop_after_failures:,} calls failed with {failure.exception}{where}, "
            f"and none succeeded in between; the records left of {self.dataset.path} were not tried"
        )
        text = told(failure.exception, failure.message, failure.traceback_text)
        return OutageError(self.name, found, f"The last of these failures: {text}")

    def _place_of(self, offset: int) -> tuple[int, int]:
        """Return index, counted from 0, and line, counted from 1, of the record at ``offset``."""
        with self.dataset.path.open("rb") as file:
            line = LineCounter(file.fileno()).line_at(offset)
            return count_records(file.fileno(), Interval(self.content.start, offset)), line
