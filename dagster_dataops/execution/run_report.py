"""RunContext: the settings of an attempt. RunReport: its result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.resume.resume_policy import ChosenRecords, ResumePolicy
from dagster_dataops.configuration import WHOLE_RESULT_MB
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.execution.progress import Progress, Quiet
from dagster_dataops.execution.records.calling import Interrupts
from dagster_dataops.foundation.frozen import frozen
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.parts import NotebookHtml
from dagster_dataops.foundation.places.bucket import published_file
from dagster_dataops.foundation.places.opening import PLAIN
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.kinds.kind_table import RECORD, kind_named

if TYPE_CHECKING:
    from dagster_dataops.datasets.exporters.delivery import Exported
    from dagster_dataops.execution.agent_pool import Cluster


@frozen()
class RunContext:
    """The settings of an attempt.

    Attributes:
        run: Name of the run in logs, locks and manifests.
        resume: Which finished records of an unfinished run are used.
        reuse_finished: Whether a finished result of any run with the same operator, options, code
            and input is returned at once.
        earlier_runs: Runs that this run continues; results that they published are kept.
        unreported: Returns whether a run died before its published result was reported. This result
            is kept as well, unless ``resume`` asks for a new one. Called under the lock of the
            folder.
        flush_seconds: Seconds of finished work that a power failure may cost. A kill costs less: at
            most the last half second of process workers.
        lock_seconds: Seconds to wait for another run that may be ending.
        whole_result_mb: The largest result in MB that is one object of a bucket in any case. The
            outputs of a larger one stay in the parts in which they were sent.
        progress: Shows the state of the run.
        should_stop: Returns a reason to stop, or ``None``; called once a second.
        interrupts: Exceptions that signals raise in the main thread.
        root: Root folder of all results; ``None`` for the folder of the node.
        clients: Objects that operators get from their context, by name.
        cluster: Machines that operators in process mode run on; ``None`` for this machine.
        result_format: The form of the files of results, one of `FORMS`.
    """

    run: str
    resume: ResumePolicy | ChosenRecords = ResumePolicy.NEVER
    reuse_finished: bool = False
    earlier_runs: frozenset[str] = frozenset()
    unreported: Callable[[str], bool] = lambda _: False
    flush_seconds: float = 1.0
    lock_seconds: float = 3.0
    whole_result_mb: float = WHOLE_RESULT_MB
    progress: Progress = field(default_factory=Quiet)
    should_stop: Callable[[], str | None] = lambda: None
    interrupts: Interrupts = (KeyboardInterrupt,)
    root: Path | None = None
    clients: Mapping[str, Any] = field(default_factory=dict)
    cluster: "Cluster | None" = None
    result_format: str = PLAIN


@dataclass(frozen=True, kw_only=True, repr=False)
class RunReport:
    """The result of running one operator.

    Attributes:
        node: Name of the node.
        dataset: The published result; of an artefact or an export the list of its files.
            Of a node with several results see ``outputs``: there is no file at the path of this
            handle.
        manifest: Facts about the result, such as counts.
        error_path: The file with the failed records, if any failed.
        reused: Whether the result was published before this attempt.
        notes: The log lines that were shown to the user.
        seconds: Duration of this attempt.
        export: The export of the result, if any.
        outputs: Of a node with several results a report of each, by the name of its output.
        kind: The kind of the operator, such as ``record``.
        replaced: The number of the version as which the result before is kept; 0 if it is not, or
            if this one is equal to it.
    """

    node: str
    dataset: JsonlDataset
    manifest: Manifest
    error_path: Path | None
    reused: bool
    notes: tuple[str, ...]
    seconds: float
    export: "Exported | None" = None
    outputs: "Mapping[str, RunReport]" = field(default_factory=dict)
    kind: str = RECORD.name
    replaced: int = 0

    _repr_html_ = NotebookHtml()

    @override
    def __repr__(self) -> str:
        rows = f"{counted(self.manifest.rows_in, 'records')} in, {self.manifest.rows_out:,} out"
        failed = f", {self.manifest.failed:,} failed" if self.manifest.failed else ""
        return f"<report of {self.node}: {rows}{failed}, in {self.folder}>"

    @property
    def results(self) -> "Mapping[str, RunReport]":
        """The report of each result, by the name that other nodes use for it as an input."""
        if not self.outputs:
            return {self.node: self}
        return {report.node: report for report in self.outputs.values()}

    @property
    def lists_files(self) -> bool:
        """Whether the result lists files instead of holding records."""
        return kind_named(self.kind).holds_files

    @property
    def exported(self) -> Path | None:
        """The file or folder to which the result was exported, if any."""
        return None if self.export is None else self.export.target

    @property
    def folder(self) -> Path:
        """The folder of the result on this machine; in a bucket it may have no copy."""
        return Path(published_file(self.dataset.location) or self.dataset.path).parent

    @property
    def artefact(self) -> Path | None:
        """The folder of the artefact; ``None`` for other results."""
        if not self.manifest.artefact:
            return None
        folder = NodeFolder(self.folder, self.node)
        return folder.artefact / self.manifest.artefact

    @property
    def rows_resumed(self) -> int:
        """Input records that earlier attempts had settled."""
        return self.manifest.rows_in if self.reused else self.manifest.resumed

    @property
    def resumed_from(self) -> tuple[str, ...]:
        """The runs that had settled these records, in order."""
        return (self.manifest.run,) if self.reused else tuple(self.manifest.resumed_from)

    @property
    def records_per_second(self) -> float:
        """The number of input records that this attempt settled per second."""
        fresh = self.manifest.rows_in - self.rows_resumed
        return fresh / self.seconds if self.seconds > 0 else 0.0
