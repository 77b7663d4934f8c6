"""OperatorExecutor: one operator over one dataset, from lock to published result."""

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from dagster_dataops.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointContent,
    existing,
    fresh,
)
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.checkpoints.publish.commit import commit, finish_interrupted
from dagster_dataops.checkpoints.publish.compose import Drafts, compose
from dagster_dataops.checkpoints.resume.reopen_failed import reopen
from dagster_dataops.checkpoints.resume.resume_policy import Decision, ResumePolicy, decide
from dagster_dataops.datasets.dataset import FileState, JsonlDataset
from dagster_dataops.datasets.lines import content_interval
from dagster_dataops.errors import InputError, OutageError, RunStoppedError, StorageError
from dagster_dataops.execution.backends.backend import run_backend
from dagster_dataops.execution.exporting import export
from dagster_dataops.execution.job import Job
from dagster_dataops.execution.progress import saved
from dagster_dataops.execution.published_result import EarlierResult
from dagster_dataops.execution.run_report import RunContext, RunReport
from dagster_dataops.execution.runners.concat_inputs import gathered, removed_afterwards
from dagster_dataops.execution.runners.dataset_runner import run_whole
from dagster_dataops.execution.runners.selection_runner import compose_kept
from dagster_dataops.operators.operator import Operator

_MOST_REPAIRS: Final = 2


class OperatorExecutor:
    """Runs operators into node folders.

    Args:
        context: How attempts are made.
    """

    def __init__(self, context: RunContext) -> None:
        self.context = context

    def run(
        self, operator: Operator, inputs: Sequence[JsonlDataset], folder: NodeFolder
    ) -> RunReport:
        """Run ``operator`` over ``inputs`` and publish the result in ``folder``.

        The result is exported afterwards if the operator has an output, also one that was there.

        Args:
            operator: A record or dataset operator.
            inputs: One dataset, or several: joined one after the other for an operator that
                takes one, handed over separately to a dataset operator that takes as many.
            folder: Where result, error file, manifest and checkpoints are.

        Raises:
            FolderLockedError: Another run is at work there.
            RecordError: A record failed and failures are not ignored.
            OutageError: Every record failed, or call after call; the published result stands.
            DatasetOperatorError: A dataset operator failed.
            StorageError: The disk refused.
            RetryRefusedError: Failed records were to be retried alone, and cannot be.
            RunStoppedError: Told to stop.
        """
        lock = FolderLock(folder.path, self.context.run, self.context.lock_seconds)
        try:
            report = _Attempt(self.context, operator, folder, lock).run(inputs)
            output = operator.__dataops__.output
            if output is None:
                return report
            return replace(report, exported=export(report.dataset, output, folder))
        finally:
            lock.release()


class _Attempt:
    """One attempt, made under the folder's lock."""

    def __init__(
        self, context: RunContext, operator: Operator, folder: NodeFolder, lock: FolderLock
    ) -> None:
        self._context = context
        self._operator = operator
        self._folder = folder
        self._lock = lock
        self._began = time.monotonic()
        self._notes: list[str] = []
        self._stamps: list[FileState] = []  # of the inputs, before anything was read of them

    def run(self, inputs: Sequence[JsonlDataset]) -> RunReport:
        invocation = self._operator.__dataops__
        late = finish_interrupted(self._folder)
        if late is not None:
            self._note(
                f"finished publishing the result of run {late.run}, which had been cut short"
            )
        run = "" if late is None else late.run
        earlier = EarlierResult(self._context, self._folder, self._lock, run)
        found = existing(self._folder.checkpoints)
        kind = invocation.spec.kind
        separate = kind == "stream" or (kind == "dataset" and invocation.spec.inputs == len(inputs))
        with removed_afterwards(self._folder.input):
            datasets = inputs if separate else [gathered(inputs, self._folder.input)]
            self._stamps = [dataset.stamp() for dataset in datasets]
            identity = " ".join(dataset.identity for dataset in datasets)
            if kind == "stream":
                return self._run_stream_operator(datasets, found, earlier)
            fingerprint = RunFingerprint.of(invocation, identity)
            report = self._taken(earlier, fingerprint)
            if report is not None:
                return report
            if kind == "dataset":
                manifest = self._run_dataset_operator(datasets, fingerprint)
            else:
                manifest = self._run_record_operator(datasets[0], fingerprint, found)
            return self._report(manifest, reused=False)

    def _taken(self, earlier: EarlierResult, fingerprint: RunFingerprint) -> RunReport | None:
        """Return what was published before if it is this run's result already."""
        taken = earlier.taken(fingerprint)
        if taken is None:
            return None
        manifest, note = taken
        self._note(note)
        return self._report(manifest, reused=True)

    def _run_record_operator(
        self, dataset: JsonlDataset, fingerprint: RunFingerprint, found: list[CheckpointContent]
    ) -> Manifest:
        decision = self._decide(dataset, fingerprint, found)
        run, flush_seconds = self._context.run, self._context.flush_seconds
        checkpoint = Checkpoint(decision.content, fingerprint, run, flush_seconds)
        with _closing(checkpoint):
            return self._run_job(self._job(dataset, checkpoint), decision, fingerprint)

    def _run_job(self, job: Job, decision: Decision, fingerprint: RunFingerprint) -> Manifest:
        progress = self._context.progress
        progress.start(self._folder.name, job.state())
        with job.afterwards:
            try:
                if decision.note is not None:
                    self._note(decision.note + saved(decision.content.seconds))
                drafts = self._until_complete(job)
            finally:
                progress.finish(job.state())
            manifest = self._manifest(drafts, job.checkpoint, fingerprint)
            return self._publish(job.checkpoint, manifest)

    def _decide(
        self, dataset: JsonlDataset, fingerprint: RunFingerprint, found: list[CheckpointContent]
    ) -> Decision:
        if self._context.resume is ResumePolicy.FAILED_RECORDS:
            from dagster_dataops.checkpoints.resume.retry_failed import decide_retry

            kind = self._operator.__dataops__.spec.kind
            return decide_retry(self._folder, found, fingerprint, dataset, kind)
        decision = decide(self._folder, found, fingerprint, self._context.resume, dataset)
        return self._reusing(decision, dataset, fingerprint, found) or decision

    def _reusing(
        self,
        decision: Decision,
        dataset: JsonlDataset,
        fingerprint: RunFingerprint,
        found: list[CheckpointContent],
    ) -> Decision | None:
        """Return what to go on from if that is nothing so far, and outcomes are used again."""
        policy = self._context.resume
        wanted = self._operator.__dataops__.resolved.reuse_outcomes
        if not wanted or decision.content.table.records or policy is ResumePolicy.NEVER:
            return None
        from dagster_dataops.checkpoints.resume.outcome_reuse import reuse

        return reuse(self._folder, found, fingerprint, policy, dataset)

    def _job(self, dataset: JsonlDataset, checkpoint: Checkpoint) -> Job:
        return Job(
            operator=self._operator,
            settings=self._operator.__dataops__.resolved,
            dataset=dataset,
            stamp=self._stamps[0],
            content=content_interval(dataset.path),
            todo=[],
            checkpoint=checkpoint,
            progress=self._context.progress,
            should_stop=self._context.should_stop,
            interrupts=self._context.interrupts,
            unshared=(self._lock.descriptor,),
        )

    def _until_complete(self, job: Job) -> Drafts:
        """Settle what is open and compose the result; damaged spans are done again.

        Raises:
            StorageError: What was done again is damaged again.
        """
        for _ in range(1 + _MOST_REPAIRS):
            job.todo = job.checkpoint.table.gaps(job.content)
            with _kept(job.checkpoint):
                self._settle(job)
            job.checkpoint.check_synced()
            selects = self._operator.__dataops__.spec.kind == "selection"
            drafts = (
                compose_kept(self._folder, job)
                if selects
                else compose(self._folder, job.checkpoint, job.dataset, outcomes=job.keeps_outcomes)
            )
            if not drafts.damaged:
                return drafts
            self._note(f"{len(drafts.damaged)} settled spans are damaged on disk; doing them again")
            job.checkpoint.reject(drafts.damaged)
        reason = "what is read back is not what was written, time and again; check the disk"
        raise StorageError(str(job.checkpoint.folder), "compose the result", reason)

    def _settle(self, job: Job) -> None:
        """Settle what is open; after an outage failed records are open again for later attempts."""
        try:
            if job.todo:
                run_backend(job)
            job.check_input_unchanged()
            job.check_complete()
            job.check_any_succeeded()
        except OutageError:
            reopen(job.checkpoint, job.dataset, job.last_failed)
            raise

    def _run_dataset_operator(
        self, datasets: Sequence[JsonlDataset], fingerprint: RunFingerprint
    ) -> Manifest:
        if self._context.resume is ResumePolicy.FAILED_RECORDS:
            from dagster_dataops.checkpoints.resume.retry_failed import refuse_whole

            refuse_whole(self._folder, "dataset")
        drafts = run_whole(self._operator, datasets, self._folder, self._context)
        self._check_unchanged(datasets)
        content = fresh(self._folder.checkpoints)
        checkpoint = Checkpoint(content, fingerprint, self._context.run, 0.0)
        try:
            manifest = self._manifest(drafts, checkpoint, fingerprint)
            return self._publish(checkpoint, manifest)
        finally:
            checkpoint.close()

    def _run_stream_operator(
        self,
        datasets: Sequence[JsonlDataset],
        found: list[CheckpointContent],
        earlier: EarlierResult,
    ) -> RunReport:
        from dagster_dataops.execution.runners.stream_runner import Flow, StreamWriter

        flow = Flow.of(self._operator, datasets)
        report = self._taken(earlier, flow.fingerprint)
        if report is not None:
            return report
        if self._context.resume is ResumePolicy.FAILED_RECORDS:
            from dagster_dataops.checkpoints.resume.retry_failed import refuse_whole

            refuse_whole(self._folder, "stream")
        checkpoint, stream, note = flow.checkpoint(self._context, self._folder, found)
        with _closing(checkpoint):
            writer = StreamWriter(flow.name, stream, checkpoint, self._context)
            self._context.progress.start(self._folder.name, writer.state())
            try:
                if note is not None:
                    self._note(note + saved(checkpoint.stopwatch.before))
                with _kept(checkpoint):
                    writer.run()
                    if self._operator.__dataops__.resolved.stop_after_failures:
                        writer.check_any_item()
                self._check_unchanged(datasets)
                checkpoint.check_synced()
            finally:
                self._context.progress.finish(writer.state())
            manifest = self._manifest(writer.drafts(self._folder), checkpoint, flow.fingerprint)
            manifest = replace(manifest, seeds=stream.seeds)
            manifest = self._publish(checkpoint, manifest)
        return self._report(manifest, reused=False)

    def _check_unchanged(self, datasets: Sequence[JsonlDataset]) -> None:
        """Refuse to publish what was made of inputs that changed meanwhile.

        Raises:
            InputError: One did.
        """
        for dataset, stamp in zip(datasets, self._stamps, strict=True):
            dataset.check_unchanged(stamp)

    def _publish(self, checkpoint: Checkpoint, manifest: Manifest) -> Manifest:
        """Put the result in place, unless the run has ended in the meantime."""
        reason = self._context.should_stop()
        if reason is not None:
            raise RunStoppedError(manifest.operator, reason)
        checkpoint.close()
        self._lock.check()
        return commit(self._folder, manifest)

    def _manifest(
        self, drafts: Drafts, checkpoint: Checkpoint, fingerprint: RunFingerprint
    ) -> Manifest:
        dataset = drafts.dataset
        if dataset is None:
            raise InputError(str(self._folder.path), "nothing was composed")
        return Manifest(
            operator=fingerprint.operator,
            rows_in=drafts.records,
            rows_out=dataset.rows or 0,
            dropped=drafts.dropped,
            failed=drafts.failed,
            resumed=checkpoint.resumed_records,
            size_bytes=dataset.size_bytes,
            modified_ns=drafts.modified_ns,
            fingerprint=dataset.fingerprint or "",
            run=self._context.run,
            attempts=checkpoint.attempts,
            seconds=round(time.monotonic() - self._began, 3),
            made_from=fingerprint.to_json(),
            kept_from=checkpoint.kept_from,
            resumed_from=checkpoint.resumed_from,
            seconds_saved=round(checkpoint.stopwatch.before, 3),
            outcomes=drafts.outcomes,
        )

    def _note(self, text: str) -> None:
        self._notes.append(text)
        self._context.progress.note(text)

    def _report(self, manifest: Manifest, *, reused: bool) -> RunReport:
        folder = self._folder
        return RunReport(
            node=folder.name,
            dataset=manifest.dataset(folder.result),
            manifest=manifest,
            error_path=folder.errors if manifest.failed and folder.errors.exists() else None,
            reused=reused,
            notes=tuple(self._notes),
            seconds=time.monotonic() - self._began,
        )


@contextmanager
def _closing(checkpoint: Checkpoint) -> Iterator[None]:
    """Close the checkpoint; after an outage in which nothing succeeded, delete it."""
    try:
        yield
    except OutageError:
        if not checkpoint.table.records:
            shutil.rmtree(checkpoint.folder, ignore_errors=True)
        raise
    finally:
        checkpoint.close()


@contextmanager
def _kept(checkpoint: Checkpoint) -> Iterator[None]:
    """Make what is finished durable, whatever ends the work."""
    try:
        yield
    except BaseException:
        checkpoint.sync()
        raise
