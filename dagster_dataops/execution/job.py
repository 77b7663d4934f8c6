"""Job: what an execution backend is given, and where it settles what it finishes."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.journal.span import Span
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
        operator: What to run.
        settings: How to run it.
        dataset: Its input.
        stamp: That of its file before anything was read of it.
        content: Where the input's lines are.
        todo: What of them is not settled, in order.
        checkpoint: Where to settle it.
        progress: Whom to tell.
        should_stop: Asked once a second; a reason to stop, or ``None``.
        interrupts: What signals raise in the main thread.
        unshared: Descriptors that forked workers must close, such as that of the folder's lock.
        last_failed: Where that ended the run: byte positions of the records that failed with
            nothing succeeding afterwards; ``None`` for all that failed.
        afterwards: What a backend need not wait for; it is over before the attempt is.
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
        """Whether spans must carry a checksum of their input: no digest of the whole is known."""
        return self.dataset.fingerprint is None

    @property
    def keeps_outcomes(self) -> bool:
        """Whether every record must be a span of its own, to be found again by its digest."""
        return self.settings.reuse_outcomes

    def settle(self, segment: int, offset: int, spans: list[Span]) -> None:
        """Journal finished spans, whose outputs lie in a row from ``offset`` of ``segment``."""
        digests = digests_in(self.dataset.path, spans) if self.keeps_outcomes else None
        self.checkpoint.settle(segment, offset, spans, digests)

    def tick(self) -> None:
        """Show progress, sync the checkpoint and check for a stop request; see `Ticker.tick`."""
        self._ticker.tick()

    def state(self) -> ProgressState:
        """Return how far the job is."""
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
        """Refuse to go on if the input is not the file it was at the start.

        Where new links or rights may be all that changed, the checksums of what was settled decide.

        Raises:
            InputError: It was replaced or changed while it was read.
        """
        now = self.dataset.stamp()
        touched = now != self.stamp and now.resembles(self.stamp)
        if touched and self.check_input and holds_settled(self.dataset, self.checkpoint.table):
            return
        self.dataset.check_unchanged(self.stamp)

    def check_complete(self) -> None:
        """Refuse to publish if a record has no outcome; blank lines need none.

        Raises:
            WorkerError: Whoever was given them has left records undone.
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
        """Refuse to publish if every record failed, unless the settings allow that.

        Raises:
            OutageError: Every one did.
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
        """Return the error of a failure that ended the run."""
        failure = failed.failure
        if self.settings.ignore_errors:  # no single one ends it
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
        """Return the error of a run whose calls failed one after the other, as ``failure`` says."""
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
