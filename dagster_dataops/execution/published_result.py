"""EarlierResult: what is published already, and whether it is this run's result as well."""

from dataclasses import replace

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, published
from dagster_dataops.checkpoints.folder.run_fingerprint import RunFingerprint
from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.datasets.durable_files import write_durably
from dagster_dataops.execution.run_report import RunContext


class EarlierResult:
    """What a folder holds before an attempt.

    Args:
        context: How the attempt is made.
        folder: Where the result is.
        lock: The folder's.
        published_late: The run whose publication this attempt has finished; empty for none.
    """

    def __init__(
        self, context: RunContext, folder: NodeFolder, lock: FolderLock, published_late: str
    ) -> None:
        self._context = context
        self._folder = folder
        self._lock = lock
        self._published_late = published_late

    def taken(self, fingerprint: RunFingerprint) -> tuple[Manifest, str] | None:
        """Return the published result if it is this run's already, and what to tell of that."""
        found = published(self._folder)
        if found is None:
            return None
        manifest = found[1]
        retries = self._context.resume is ResumePolicy.FAILED_RECORDS
        reused = self._context.reuse_finished and not retries and manifest.made_by(fingerprint)
        if reused or (manifest.finished_by(fingerprint) and self._is_ours(manifest.run)):
            if not reused:
                self._take_over(manifest)
            return manifest, (
                f"already finished by run {manifest.run}: {manifest.rows_out:,} records, "
                f"same operator, options, code and input"
            )
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

    def _without_failures(self, fingerprint: RunFingerprint) -> tuple[Manifest, str] | None:
        """Return the published result if no record of it is to be retried."""
        from dagster_dataops.checkpoints.resume.retry_failed import standing

        manifest = standing(self._folder, fingerprint)
        if manifest is None:
            return None
        return manifest, f"no failed record to retry: the result of run {manifest.run} stands"
