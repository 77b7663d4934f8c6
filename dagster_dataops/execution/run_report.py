"""RunContext: how one attempt is made. RunReport: what came of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.execution.progress import Progress, Quiet
from dagster_dataops.execution.records.settle import Interrupts


def _never() -> str | None:
    return None


def _told(_: str) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """How one attempt is made.

    Attributes:
        run: Name of the attempt, as logs, locks and manifests show it.
        resume: When finished records of an unfinished run are used again.
        reuse_finished: Whether a finished result of the same operator, options, code and input
            is the result at once, whoever made it.
        earlier_runs: Runs that this one continues; what one of them published is not made again.
        untold: Asked, under the folder's lock, whether a run died before anybody was told of what
            it published; that is not made again either, unless everything is to be.
        flush_seconds: How much finished work may be lost to a power failure. A kill loses less:
            what process workers finished in the last half second, at most.
        lock_seconds: How long to wait for another run that may be dying.
        progress: Whom to tell.
        should_stop: Asked once a second; a reason to stop, or ``None``.
        interrupts: What signals raise in the main thread.
    """

    run: str
    resume: ResumePolicy = ResumePolicy.NEVER
    reuse_finished: bool = False
    earlier_runs: frozenset[str] = frozenset()
    untold: Callable[[str], bool] = _told
    flush_seconds: float = 1.0
    lock_seconds: float = 3.0
    progress: Progress = field(default_factory=Quiet)
    should_stop: Callable[[], str | None] = _never
    interrupts: Interrupts = (KeyboardInterrupt,)


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What came of running one operator over one dataset.

    Attributes:
        node: Name of the node.
        dataset: The published result.
        manifest: Its counts.
        error_path: The file with the failed records, if any failed.
        reused: Whether an earlier run's result was taken as it is.
        notes: What the user was told.
        seconds: Duration of this attempt.
        exported: The file that the result was exported to as well, if any.
    """

    node: str
    dataset: JsonlDataset
    manifest: Manifest
    error_path: Path | None
    reused: bool
    notes: tuple[str, ...]
    seconds: float
    exported: Path | None = None

    @property
    def rows_resumed(self) -> int:
        """Input records that this attempt did not have to settle."""
        return self.manifest.rows_in if self.reused else self.manifest.resumed

    @property
    def resumed_from(self) -> tuple[str, ...]:
        """The runs that had settled them, in order."""
        return (self.manifest.run,) if self.reused else tuple(self.manifest.resumed_from)

    @property
    def records_per_second(self) -> float:
        """Input records of this attempt by its seconds."""
        fresh = self.manifest.rows_in - self.rows_resumed
        return fresh / self.seconds if self.seconds > 0 else 0.0
