"""RecordRunner: process every record in the workplace of the mode, then compose."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.journal.span import ReopenedEntry
from dagster_dataops.checkpoints.publish.compose import compose
from dagster_dataops.checkpoints.publish.drafts import Drafts
from dagster_dataops.checkpoints.publish.record_summary import RecordSummary
from dagster_dataops.checkpoints.resume.start_decision import StartKind
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.file_values.file_reads import COUNT as READ_FILES
from dagster_dataops.datasets.file_values.file_reads import first_replaced, forget
from dagster_dataops.errors import OutageError, StorageError
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.execution.column_presence import check_found
from dagster_dataops.execution.node_attempt import NodeAttempt, synced_on_failure
from dagster_dataops.execution.runners.runner import Runner
from dagster_dataops.execution.work_list import WorkList
from dagster_dataops.execution.workplaces.workplace import run_workplace
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.definition.operator import Operator

_MOST_REPAIRS: Final = 2
_MB: Final = 1 << 20


class RecordRunner(Runner):
    """Runs record operators."""

    def __init__(self, operator: Operator, inputs: Sequence[JsonlDataset]) -> None:
        (self._dataset,) = inputs
        self.records = self._dataset
        self.fingerprint = RunFingerprint.of(operator.__dataops__, self._dataset.identity)

    @override
    def run(self, attempt: NodeAttempt) -> Drafts:
        """Process every open record and compose the result; repeat damaged spans.

        Raises:
            StorageError: Repeated spans are damaged again.
        """
        context = attempt.context
        content, flush_seconds = attempt.start.content, context.flush_seconds
        checkpoint = Checkpoint(
            content, self.fingerprint, context.run, flush_seconds, attempt.lock.journal
        )
        work = WorkList(attempt.operator, self._dataset)
        sink = CheckpointSink(attempt, work, checkpoint)
        if attempt.start.kind is StartKind.RETRY_FAILED and checkpoint.table.failed:
            from dagster_dataops.checkpoints.resume.reopen_failed import reopen  # rare

            reopen(checkpoint, self._dataset, retries=True)
        if attempt.start.kind is not StartKind.RETRY_FAILED:
            _reopen_replaced(checkpoint)
        note = self._journal_known(attempt, checkpoint)
        if note:
            checkpoint.count_resumed()
            if attempt.start.kind is not StartKind.FRESH:
                note = f"{attempt.start.note}; {note}"
            attempt.start = attempt.start._replace(note=note)
        with attempt.shown(sink.state):
            for _ in range(1 + _MOST_REPAIRS):
                work.open = checkpoint.table.gaps(work.content)
                with synced_on_failure(checkpoint):
                    _process(sink)
                    drafts = self.compose(attempt, sink)
                if isinstance(drafts, Drafts):
                    return drafts
                attempt.note(f"{len(drafts)} settled spans are damaged on disk; doing them again")
                checkpoint.reject(drafts)
                self._journal_known(attempt, checkpoint)
        reason = "the output read back still differs from the output written; check the disk"
        raise StorageError(str(checkpoint.folder), "compose the result", reason)

    def _journal_known(self, attempt: NodeAttempt, checkpoint: Checkpoint) -> str:
        """Journal the known outcomes of open records; return the line for the log."""
        sources = attempt.start.sources
        if not sources:
            return ""
        from dagster_dataops.checkpoints.resume.known_outcomes import journal_known  # sqlite3

        return journal_known(checkpoint, self._dataset, sources, attempt.lock.take_result)

    def compose(self, attempt: NodeAttempt, sink: CheckpointSink) -> Drafts | list[int]:
        """Return the drafts of the settled records, or the starts of damaged spans."""
        outcomes, traced = attempt.settings.reuse_outcomes, attempt.settings.trace
        checkpoint, dataset = sink.checkpoint, sink.work.dataset
        whole = attempt.context.whole_result_mb * _MB
        writer = partial(attempt.lock.writer, outputs=checkpoint, whole_bytes=whole)
        drafts = compose(
            attempt.folder, checkpoint, dataset, outcomes=outcomes, traced=traced, writer=writer
        )
        if not isinstance(drafts, Drafts):
            return drafts
        parts = [name for name, _ in attempt.operator.__dataops__.spec.parts]
        return replace(drafts, summary=RecordSummary.of(checkpoint.table, dataset, parts))


def _reopen_replaced(checkpoint: Checkpoint) -> None:
    """Reopen the records that were made of files of which one was replaced since, durably.

    A retry of failed or chosen records keeps all others as they are.
    """
    table = checkpoint.table
    count = table.counts.get(READ_FILES, 0)
    kept = checkpoint.content.retries or checkpoint.content.redo
    if not count or kept or not first_replaced(checkpoint.folder):
        return
    marks = {start: note.counts.get(READ_FILES, 0) for start, note in table.notes.items()}
    starts = [start for start, mark in marks.items() if mark]
    if sum(marks.values()) < count:  # spans that were divided have lost theirs
        starts = list(table.column("start"))
    checkpoint.reopen(ReopenedEntry(starts, retries=False), None)
    checkpoint.sync()
    forget(checkpoint.folder)


def _process(sink: CheckpointSink) -> None:
    """Process the open records; after an outage, reopen failed records for later attempts."""
    try:
        if sink.work.open:
            run_workplace(sink)
        sink.check_input_unchanged()
        sink.check_files_unchanged()
        sink.check_complete()
        sink.check_any_succeeded()
        check_found(sink)
    except OutageError:
        from dagster_dataops.checkpoints.resume.reopen_failed import reopen  # rare

        reopen(sink.checkpoint, sink.work.dataset, sink.last_failed)
        raise
