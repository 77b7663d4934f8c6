"""StartDecision: how an attempt starts. StartRequest: the facts that the decision depends on.

All log lines about a start are in this module.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from dagster_dataops.checkpoints.checkpoint import CheckpointContent, fresh
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.folder.run_fingerprint import CHANGEABLE, RunFingerprint, in_words
from dagster_dataops.checkpoints.journal.segments import Segments
from dagster_dataops.checkpoints.resume.resume_policy import ChosenRecords, ResumePolicy
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.foundation.frozen import frozen
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.kinds.kind import OperatorKind

if TYPE_CHECKING:
    from dagster_dataops.checkpoints.journal.positions import Position, StageParts


SWITCHED_OFF: Final = "resuming is switched off"
UNKNOWN: Final = "its operator, options, code and input are unknown"


class StartKind(Enum):
    """How an attempt starts.

    Attributes:
        FRESH: Everything is to do.
        RESUME: An unfinished run is continued.
        RETRY_FAILED: The failed records of an earlier run are to do.
        DONE: The published result is the result of this run.
    """

    FRESH = "fresh"
    RESUME = "resume"
    RETRY_FAILED = "retry failed"
    DONE = "done"


class ResumableStream(Protocol):
    """A stream that can continue at a position."""

    @property
    def parts(self) -> "StageParts":
        """The stages of the stream."""

    def as_present(self, stages: Any) -> Any:
        """Return stored stages; those that version 0.2 would have stored are the present ones."""

    def restore(self, folder: Path, position: "Position") -> str:
        """Continue at a position of the checkpoint in ``folder``.

        Returns:
            The reason why the position cannot be used; empty if the stream is there.
        """


@frozen()
class StartRequest:
    """Facts that a start decision depends on.

    Attributes:
        folder: Of the operator's node.
        kind: Of the operator.
        fingerprint: Of this run.
        policy: Which finished records may be used.
        contents: The checkpoints of the node, newest first.
        records: The input whose records are settled one by one; ``None`` for other kinds.
        stream: The stream that is to be written; ``None`` for other kinds.
        reuse_finished: Whether a finished result of the same fingerprint is the result at once.
        reuse_outcomes: Whether outcomes that earlier runs have stored are used.
        own_runs: This run and the runs that it continues.
        unreported: Return whether a run published without reporting its result.
        complete: Return whether the files outside the folder that belong to the published result
            are there and unchanged.
        segments_of: Return the segments of the checkpoint in a folder.
        take_result: As `Claim.take_result`.
    """

    folder: NodeFolder
    kind: OperatorKind
    fingerprint: RunFingerprint
    policy: ResumePolicy | ChosenRecords
    contents: list[CheckpointContent]
    records: JsonlDataset | None = None
    stream: ResumableStream | None = None
    reuse_finished: bool
    reuse_outcomes: bool
    own_runs: frozenset[str]
    unreported: Callable[[str], bool]
    complete: Callable[[], bool] = lambda: True
    segments_of: Callable[[Path], Segments] = Segments
    take_result: Callable[[Path], bool] = lambda _: False


class OutcomeSource(NamedTuple):
    """A checkpoint or published result with outcomes of single records.

    Attributes:
        content: The content of its journal.
        journal: The file of its journal.
        segments: The segments with the outcomes; of a published result the result itself.
        published: Whether the only segment is the published result: see `Claim.take_result`.
    """

    content: CheckpointContent
    journal: Path
    segments: Segments
    published: bool = False


class StartDecision(NamedTuple):
    """How an attempt starts.

    Attributes:
        kind: See `StartKind`.
        content: The checkpoint to write to, perhaps a new one; unused if done.
        note: The line for the log; empty if there is nothing to say.
        position: Where a resumed stream continues.
        published: The manifest of the result; only if done.
        takes_over: Whether this run becomes the publisher of the result; only if done.
        sources: Where outcomes of open records are looked up, the latest first.
    """

    kind: StartKind
    content: CheckpointContent
    note: str = ""
    position: "Position | None" = None
    published: Manifest | None = None
    takes_over: bool = False
    sources: tuple[OutcomeSource, ...] = ()


def start_afresh(request: StartRequest, note: str = "") -> StartDecision:
    """Return the decision to start with a new checkpoint."""
    return StartDecision(StartKind.FRESH, fresh(request.folder.checkpoints), note)


def not_used(settled: str, reason: str) -> str:
    """Return the log line for starting afresh although a checkpoint exists.

    Args:
        settled: The content of the checkpoint, by `settled_by`.
        reason: The reason not to use it, as the end of a sentence.
    """
    return (
        f"starting afresh, without {settled}, because {reason}; their checkpoint is kept until "
        "this run's result is published"
    )


def settled_by(
    content: CheckpointContent, count: int, unit: str = "records", of: int | None = None
) -> str:
    """Return the number of settled records and the runs that settled them, in words."""
    latest = content.attempts[-1] if content.attempts else "unknown"
    earlier = len(content.attempts) - 1
    runs = f"run {latest}" + (f" and {earlier} before it" if earlier > 0 else "")
    number = counted(count, unit) if of is None else f"{count:,} of {counted(of, unit)}"
    return f"{number} settled by {runs}"


def resuming(content: CheckpointContent, request: StartRequest) -> str:
    """Return the log line for resuming the records of ``content``."""
    rows = request.records.rows if request.records is not None else None
    note = f"resuming: {settled_by(content, content.table.records, of=rows)}"
    changed = changed_since(content, request.fingerprint)
    return f"{note}; {changed}, those records are kept as asked" if changed else note


def changed_since(content: CheckpointContent, fingerprint: RunFingerprint) -> str:
    """Return the parts of the operator that have changed since ``content``, in words."""
    before = content.fingerprint
    if before is None:
        return ""
    changed = [part for part in before.differences(fingerprint) if part in CHANGEABLE]
    text = have_changed(changed, before.files_changed(fingerprint))
    return text.replace("its", "the operator's", 1) if changed else ""


def have_changed(parts: list[str], files: Sequence[str] = ()) -> str:
    """Return a phrase such as ``its options have changed since``."""
    verb = "have" if len(parts) > 1 or parts == ["options"] else "has"
    text = f"{in_words(parts)} {verb} changed since"
    return text + in_files(files) if "options" in parts else text


def in_files(options: Sequence[str]) -> str:
    """Return an addition to a phrase that names options whose file has another content."""
    names = " and ".join(map(repr, options))
    return f" (the content of the file of {names})" if options else ""


def why_other(content: CheckpointContent, fingerprint: RunFingerprint, differing: list[str]) -> str:
    """Return why a checkpoint is that of another run."""
    before = content.fingerprint
    anew = before.compared_anew(fingerprint) if before is not None else []
    ruled = [part for part in differing if part in anew]
    changed = [part for part in differing if part not in anew]
    files = before.files_changed(fingerprint) if before is not None else []
    texts = [have_changed(changed, files)] if changed else []
    if ruled:
        texts.append(
            f"another version of dagster-dataops compared {in_words(ruled)} by other rules"
        )
    hint = " (`resume: across_code` keeps them)" if differing == ["code"] else ""
    return " and ".join(texts) + hint
