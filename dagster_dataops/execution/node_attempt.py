"""NodeAttempt: one run of one operator into one folder, from its start to its drafts."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, TypeVar

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.places.node_place import Claim
from dagster_dataops.checkpoints.resume.start_decision import StartDecision
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import OutageError
from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.progress import ProgressState
from dagster_dataops.execution.run_report import RunContext
from dagster_dataops.execution.ticker import Ticker
from dagster_dataops.foundation.frozen import changeable
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.file_state import FileState

_Checkpoint = TypeVar("_Checkpoint", bound=Checkpoint)


@changeable
class NodeAttempt(Attempt):
    """One run of one operator into one folder; created under the lock of the folder.

    Attributes:
        context: The settings of the run.
        folder: The folder of result, error file, manifest and checkpoints.
        lock: The claim of this run on the node.
        sources: Facts about the given inputs, for the manifest.
        inputs: The datasets that the operator reads.
        stamps: The states of their files before anything was read.
        read_ns: The time at that moment, in nanoseconds since 1970.
        continues: Whether there are checkpoints of earlier runs.
        unread: Whether the folder has something that this version does not read.
        start: How the attempt starts.
        checkpoint: The argument of `open_checkpoint`; ``None`` if nothing is settled.
        notes: Log lines for the user.
        kept_version: The number of the version as which the result before was kept; 0 if it is not.
        began: Start of the attempt, in seconds of the monotonic clock.
    """

    context: RunContext
    folder: NodeFolder
    lock: Claim
    sources: list[dict[str, Any]] = field(default_factory=list)
    inputs: Sequence[JsonlDataset] = ()
    stamps: list[FileState] = field(default_factory=list)
    read_ns: int = 0
    continues: bool = False
    unread: bool = False
    start: StartDecision = field(init=False)
    checkpoint: Checkpoint | None = None
    notes: list[str] = field(default_factory=list)
    kept_version: int = 0
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.interrupts = self.context.interrupts

    @override
    def log(self, text: str) -> None:
        self.context.progress.note(text)

    def read(self, inputs: Sequence[JsonlDataset]) -> None:
        """Set the datasets that the operator reads, and note the states of their files."""
        self.inputs = inputs
        self.read_ns = time.time_ns()
        self.stamps = [dataset.stamp() for dataset in inputs]

    def note(self, text: str) -> None:
        """Show a line in the log and beside the result; an empty text shows nothing."""
        if text:
            self.notes.append(text)
            self.log(text)

    def warn(self, text: str) -> None:
        """Show a line that the user should act on."""
        self.notes.append(text)
        self.context.progress.warn(self.folder.name, text)

    def open_checkpoint(self, checkpoint: _Checkpoint) -> _Checkpoint:
        """Set the checkpoint of the attempt, and close it when the attempt ends; return it."""
        self.resources.enter_context(_closing(checkpoint))
        self.checkpoint = checkpoint
        return checkpoint

    def ticker(self, state: Callable[[], ProgressState]) -> Ticker:
        """Return the ticker of the attempt; ``state`` returns the present progress."""
        context = self.context
        return Ticker(self.name, state, context.progress, self._should_stop, self.checkpoint)

    def _should_stop(self) -> str | None:
        """Return a reason to stop, or ``None``."""
        self.lock.check()
        return self.context.should_stop()

    @contextmanager
    def shown(self, state: Callable[[], ProgressState]) -> Iterator[Ticker]:
        """Show progress, beginning with the note of the start, while the block runs.

        Yields:
            The ticker to call from the block.
        """
        context = self.context
        context.progress.start(self.folder.name, state())
        try:
            self.note(self.start.note)
            yield self.ticker(state)
        finally:
            context.progress.finish(state())

    def check_inputs_unchanged(self) -> None:
        """Check that no input has changed since the attempt began.

        Raises:
            InputError: An input was replaced or changed while it was read.
        """
        for dataset, stamp in zip(self.inputs, self.stamps, strict=True):
            dataset.check_unchanged(stamp, self.read_ns)


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
def synced_on_failure(checkpoint: Checkpoint) -> Iterator[None]:
    """Sync the checkpoint if the block fails, so that a power loss costs no settled record."""
    try:
        yield
    except BaseException:
        checkpoint.sync()
        raise
