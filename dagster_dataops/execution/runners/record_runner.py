"""RecordRunner: settle every record by the backend of the concurrency mode, then compose."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from typing_extensions import override

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.publish.compose import compose
from dagster_dataops.checkpoints.publish.drafts import Drafts
from dagster_dataops.checkpoints.publish.record_summary import RecordSummary
from dagster_dataops.checkpoints.resume.reopen_failed import reopen
from dagster_dataops.checkpoints.resume.start_decision import StartDecision, StartKind
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import OutageError, StorageError
from dagster_dataops.execution.attempt import Attempt, synced_on_failure
from dagster_dataops.execution.backends.backend import run_backend
from dagster_dataops.execution.column_presence import check_found
from dagster_dataops.execution.job import Job
from dagster_dataops.execution.runners.runner import Runner
from dagster_dataops.operators.chains.chain import part_names
from dagster_dataops.operators.definition.operator import Operator

_MOST_REPAIRS: Final = 2


class RecordRunner(Runner):
    """Runs record operators.

    Args:
        operator: The operator.
        inputs: Its only input.
    """

    def __init__(self, operator: Operator, inputs: Sequence[JsonlDataset]) -> None:
        (self._dataset,) = inputs
        self.records = self._dataset
        self.fingerprint = RunFingerprint.of(operator.__dataops__, self._dataset.identity)

    @override
    def run(self, attempt: Attempt) -> Drafts:
        """Settle every open record and compose the result; repeat damaged spans.

        Raises:
            StorageError: Repeated spans are damaged again.
        """
        context = attempt.context
        content, flush_seconds = attempt.start.content, context.flush_seconds
        checkpoint = Checkpoint(
            content, self.fingerprint, context.run, flush_seconds, attempt.lock.journal
        )
        job = Job(attempt, checkpoint)
        if attempt.start.kind is StartKind.RETRY_FAILED and checkpoint.table.failed:
            reopen(checkpoint, self._dataset, retries=True)
        note = self._settle_known(attempt.start, checkpoint)
        if note:
            checkpoint.count_resumed()
            attempt.start = _noted(attempt.start, note)
        with attempt.shown(job.state):
            for _ in range(1 + _MOST_REPAIRS):
                job.todo = checkpoint.table.gaps(job.content)
                with synced_on_failure(checkpoint):
                    _settle(job)
                made = self.compose(attempt, job)
                if isinstance(made, Drafts):
                    return made
                attempt.note(f"{len(made)} settled spans are damaged on disk; doing them again")
                checkpoint.reject(made)
                self._settle_known(attempt.start, checkpoint)
        reason = "the output read back still differs from the output written; check the disk"
        raise StorageError(str(checkpoint.folder), "compose the result", reason)

    def _settle_known(self, start: StartDecision, checkpoint: Checkpoint) -> str:
        """Settle the open records with known outcomes; return the line for the log."""
        if not start.sources:
            return ""
        from dagster_dataops.checkpoints.resume.record_cache import settle_known  # sqlite3

        return settle_known(checkpoint, self._dataset, start.sources)

    def compose(self, attempt: Attempt, job: Job) -> Drafts | list[int]:
        """Return the drafts of the settled records, or the starts of damaged spans."""
        outcomes, traced = job.keeps_outcomes, attempt.settings.trace
        made = compose(
            attempt.folder, job.checkpoint, job.dataset, outcomes=outcomes, traced=traced
        )
        if not isinstance(made, Drafts):
            return made
        parts = part_names(attempt.operator)
        return replace(made, summary=RecordSummary.of(job.checkpoint.table, job.dataset, parts))


def _noted(start: StartDecision, note: str) -> StartDecision:
    """Return ``start`` with a note of reused outcomes, which replaces that of a fresh start."""
    fresh = start.kind is StartKind.FRESH
    return replace(start, note=note if fresh else f"{start.note}; {note}")


def _settle(job: Job) -> None:
    """Settle the open records; after an outage, reopen failed records for later attempts."""
    try:
        if job.todo:
            run_backend(job)
        job.check_input_unchanged()
        job.check_complete()
        job.check_any_succeeded()
        check_found(job)
    except OutageError:
        reopen(job.checkpoint, job.dataset, job.last_failed)
        raise
