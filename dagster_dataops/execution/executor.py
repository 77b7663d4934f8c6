"""OperatorExecutor: one operator over one dataset, from lock to published result."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dagster_dataops.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointContent,
    existing,
    fresh,
)
from dagster_dataops.checkpoints.composition import Drafts, compose
from dagster_dataops.checkpoints.fingerprint import RunFingerprint
from dagster_dataops.checkpoints.lock import FolderLock
from dagster_dataops.checkpoints.manifest import Manifest, NodeFolder, published
from dagster_dataops.checkpoints.publication import commit, finish_interrupted
from dagster_dataops.checkpoints.resuming import Decision, ResumePolicy, decide
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.files import write_durably
from dagster_dataops.datasets.lines import content_interval
from dagster_dataops.errors import InputError, RunStoppedError, StorageError
from dagster_dataops.execution.gathering import gathered
from dagster_dataops.execution.job import Job
from dagster_dataops.execution.progress import duration
from dagster_dataops.execution.report import RunContext, RunReport
from dagster_dataops.execution.selecting import compose_kept
from dagster_dataops.execution.whole import run_whole
from dagster_dataops.operators.operator import Operator

if TYPE_CHECKING:
    from dagster_dataops.execution.streaming import StreamWriter

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

        Args:
            operator: A record or dataset operator.
            inputs: One dataset, or several: joined one after the other for an operator that
                takes one, handed over separately to a dataset operator that takes as many.
            folder: Where result, error file, manifest and checkpoints are.

        Raises:
            FolderLockedError: Another run is at work there.
            RecordError: A record failed and failures are not ignored.
            DatasetOperatorError: A dataset operator failed.
            StorageError: The disk refused.
            RetryRefusedError: Failed records were to be retried alone, and cannot be.
            RunStoppedError: Told to stop.
        """
        lock = FolderLock(folder.path, self.context.run, self.context.lock_seconds)
        try:
            return _Attempt(self.context, operator, folder, lock).run(inputs)
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
        self._published_late = ""  # the run whose publication this attempt finished

    def run(self, inputs: Sequence[JsonlDataset]) -> RunReport:
        invocation = self._operator.__dataops__
        late = finish_interrupted(self._folder)
        if late is not None:
            self._published_late = late.run
            self._note(
                f"finished publishing the result of run {late.run}, which had been cut short"
            )
        found = existing(self._folder.checkpoints)
        kind = invocation.spec.kind
        separate = kind == "stream" or (kind == "dataset" and invocation.spec.inputs == len(inputs))
        datasets = inputs if separate else [gathered(inputs, self._folder.input)]
        identity = " ".join(dataset.identity for dataset in datasets)
        if kind == "stream":
            return self._run_stream_operator(datasets, found)
        fingerprint = RunFingerprint.of(invocation, identity)
        report = self._finished_before(fingerprint)
        if report is not None:
            return report
        if kind == "dataset":
            manifest = self._run_dataset_operator(datasets, fingerprint)
        else:
            manifest = self._run_record_operator(datasets[0], fingerprint, found)
        self._folder.input.unlink(missing_ok=True)
        return self._report(manifest, reused=False)

    def _finished_before(self, fingerprint: RunFingerprint) -> RunReport | None:
        """Return the published result if it is this run's already."""
        found = published(self._folder)
        if found is None:
            return None
        manifest = found[1]
        retries = self._context.resume is ResumePolicy.FAILED_RECORDS
        reused = self._context.reuse_finished and not retries and manifest.made_by(fingerprint)
        if reused or (manifest.finished_by(fingerprint) and self._is_ours(manifest.run)):
            if not reused:
                self._take_over(manifest)
            self._note(
                f"already finished by run {manifest.run}: {manifest.rows_out:,} records, "
                f"same operator, options, code and input{_saved(manifest.all_seconds)}"
            )
            return self._report(manifest, reused=True)
        return self._without_failures(fingerprint) if retries else None

    def _is_ours(self, run: str) -> bool:
        """Whether what a run published is this run's result: nobody was told of it yet."""
        context = self._context
        if run in context.earlier_runs | {context.run}:
            return True
        if context.resume in {ResumePolicy.NEVER, ResumePolicy.FAILED_RECORDS}:
            return False
        return run == self._published_late or context.untold(run)

    def _take_over(self, manifest: Manifest) -> None:
        """Make an earlier run's result this one's, so that it is no later run's without being told.

        The report still names the run that made it.
        """
        if manifest.run != self._context.run:
            self._lock.check()
            ours = replace(manifest, run=self._context.run)
            write_durably(self._folder.manifest, ours.to_bytes())

    def _without_failures(self, fingerprint: RunFingerprint) -> RunReport | None:
        """Return the published result if no record of it is to be retried."""
        from dagster_dataops.checkpoints.retrying import standing

        manifest = standing(self._folder, fingerprint)
        if manifest is None:
            return None
        self._note(f"no failed record to retry: the result of run {manifest.run} stands")
        return self._report(manifest, reused=True)

    def _run_record_operator(
        self, dataset: JsonlDataset, fingerprint: RunFingerprint, found: list[CheckpointContent]
    ) -> Manifest:
        context = self._context
        stamp = dataset.stamp()
        decision = self._decide(dataset, fingerprint, found)
        checkpoint = Checkpoint(decision.content, fingerprint, context.run, context.flush_seconds)
        try:
            job = self._job(dataset, checkpoint, stamp)
            context.progress.start(self._folder.name, job.state())
            try:
                if decision.note is not None:
                    self._note(decision.note + _saved(decision.content.seconds))
                drafts = self._until_complete(job)
            finally:
                context.progress.finish(job.state())
            manifest = self._manifest(drafts, checkpoint, fingerprint)
            self._publish(checkpoint, manifest)
            return manifest
        finally:
            checkpoint.close()

    def _decide(
        self, dataset: JsonlDataset, fingerprint: RunFingerprint, found: list[CheckpointContent]
    ) -> Decision:
        if self._context.resume is ResumePolicy.FAILED_RECORDS:
            from dagster_dataops.checkpoints.retrying import decide_retry

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
        from dagster_dataops.checkpoints.reusing import reuse

        return reuse(self._folder, found, fingerprint, policy, dataset)

    def _job(self, dataset: JsonlDataset, checkpoint: Checkpoint, stamp: tuple[int, ...]) -> Job:
        return Job(
            operator=self._operator,
            settings=self._operator.__dataops__.resolved,
            dataset=dataset,
            stamp=stamp,
            content=content_interval(dataset.path),
            todo=[],
            checkpoint=checkpoint,
            progress=self._context.progress,
            should_stop=self._context.should_stop,
            interrupts=self._context.interrupts,
        )

    def _until_complete(self, job: Job) -> Drafts:
        """Settle what is open and compose the result; damaged spans are done again.

        Raises:
            StorageError: What was done again is damaged again.
        """
        for _ in range(1 + _MOST_REPAIRS):
            job.todo = job.checkpoint.table.gaps(job.content)
            if job.todo:
                self._settle(job)
            job.check_input_unchanged()
            job.check_complete()
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
        try:
            self._run_backend(job)
        except BaseException:
            job.checkpoint.sync()
            raise

    def _run_backend(self, job: Job) -> None:
        """Run what the concurrency mode says; only that is imported."""
        match job.settings.concurrency_mode:
            case "single":
                from dagster_dataops.execution.single import run_single

                run_single(job)
            case "thread":
                from dagster_dataops.execution.threads import run_threads

                run_threads(job)
            case "async":
                from dagster_dataops.execution.asynchronous import run_async

                run_async(job)
            case "process":
                from dagster_dataops.execution.processes import run_processes

                run_processes(job, (self._lock.descriptor,))

    def _run_dataset_operator(
        self, datasets: Sequence[JsonlDataset], fingerprint: RunFingerprint
    ) -> Manifest:
        if self._context.resume is ResumePolicy.FAILED_RECORDS:
            from dagster_dataops.checkpoints.retrying import refuse_whole

            refuse_whole(self._folder, "dataset")
        drafts = run_whole(self._operator, datasets, self._folder, self._context)
        content = fresh(self._folder.checkpoints)
        checkpoint = Checkpoint(content, fingerprint, self._context.run, 0.0)
        try:
            manifest = self._manifest(drafts, checkpoint, fingerprint)
            self._publish(checkpoint, manifest)
        finally:
            checkpoint.close()
        return manifest

    def _run_stream_operator(
        self, datasets: Sequence[JsonlDataset], found: list[CheckpointContent]
    ) -> RunReport:
        from dagster_dataops.execution.streaming import Flow, StreamWriter

        flow = Flow.of(self._operator, datasets)
        report = self._finished_before(flow.fingerprint)
        if report is not None:
            return report
        if self._context.resume is ResumePolicy.FAILED_RECORDS:
            from dagster_dataops.checkpoints.retrying import refuse_whole

            refuse_whole(self._folder, "stream")
        checkpoint, stream, note = flow.checkpoint(self._context, self._folder, found)
        try:
            writer = StreamWriter(flow.name, stream, checkpoint, self._context)
            self._context.progress.start(self._folder.name, writer.state())
            try:
                if note is not None:
                    self._note(note + _saved(checkpoint.stopwatch.before))
                self._settled(writer, checkpoint)
            finally:
                self._context.progress.finish(writer.state())
            manifest = self._manifest(writer.drafts(self._folder), checkpoint, flow.fingerprint)
            manifest = replace(manifest, seeds=stream.seeds)
            self._publish(checkpoint, manifest)
        finally:
            checkpoint.close()
        return self._report(manifest, reused=False)

    @staticmethod
    def _settled(writer: "StreamWriter", checkpoint: Checkpoint) -> None:
        try:
            writer.run()
        except BaseException:
            checkpoint.sync()
            raise
        checkpoint.check_synced()

    def _publish(self, checkpoint: Checkpoint, manifest: Manifest) -> None:
        """Put the result in place, unless the run has ended in the meantime."""
        reason = self._context.should_stop()
        if reason is not None:
            raise RunStoppedError(manifest.operator, reason)
        checkpoint.close()
        self._lock.check()
        commit(self._folder, manifest)

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


def _saved(seconds: float) -> str:
    """Return what to tell of work that need not be done again; nothing of moments."""
    return f"; {duration(seconds)} of work saved" if seconds >= 1 else ""
