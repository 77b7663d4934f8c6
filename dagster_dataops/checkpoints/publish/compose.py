"""Compose: make the drafts of result and error file from settled spans, in input order."""

from array import array
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.journal.segment_reader import joined_outputs, outputs
from dagster_dataops.checkpoints.publish.drafts import Drafts, DraftWriter, drafting
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.lines import LineCounter
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.foundation.places.opening import opened

if TYPE_CHECKING:
    from dagster_dataops.checkpoints.journal.failed_record import FailedRecord
    from dagster_dataops.checkpoints.journal.kept_journal import KeptJournal
    from dagster_dataops.checkpoints.journal.span import Span
    from dagster_dataops.checkpoints.stream_checkpoint import StreamCheckpoint


class LineSelection(Protocol):
    """Chooses the result lines of a selection operator."""

    def tick(self) -> None:
        """Show progress and check for a stop request; called once per span."""

    def write(self, results: JsonlWriter, failed: "array[int]", kept: "KeptJournal | None") -> int:
        """Write the chosen lines of the input, and return the number of records without one.

        Args:
            results: Writes them.
            failed: Byte positions of the failed records in the input, in rising order.
            kept: Takes which lines were chosen; ``None`` if no map is wanted.
        """


def compose(  # noqa: PLR0913
    folder: NodeFolder,
    checkpoint: Checkpoint,
    dataset: JsonlDataset,
    *,
    outcomes: bool = False,
    traced: bool = True,
    select: LineSelection | None = None,
    writer: Callable[[Path], JsonlWriter] = JsonlWriter,
) -> Drafts | list[int]:
    """Write result and error file as drafts; check every span on the way.

    There is a third draft, the map from input records to result lines, if records failed, since a
    retry of these records alone starts from it, and if a record did not become one line.

    Args:
        folder: Of the operator's node.
        checkpoint: With every record settled.
        dataset: The input.
        outcomes: Whether the third draft is made in any case, and holds every outcome with the
            digest of its input.
        traced: Whether the map is written although no later run needs it.
        select: Chooses the result lines; ``None`` takes the outputs of the spans.
        writer: As `Claim.writer`.

    Returns:
        The drafts, or the starts of the spans that do not pass their checksum: these spans must
        be done again.
    """
    with drafting(folder, "compose the result", writer) as drafts:
        if select is not None:
            kept = _kept_journal(folder, dataset, check_input=False) if traced else nullcontext()
            return _compose_selected(checkpoint, dataset, drafts, select, kept)
        mapped = (traced or bool(folder.outputs)) and any(
            notes.table for notes in checkpoint.table.notes.values()
        )
        if not folder.outputs:
            _link_only_segment(checkpoint, drafts.results)
        if checkpoint.table.failed or mapped or outcomes:
            return _compose_keeping(folder, checkpoint, dataset, drafts, outcomes=outcomes)
        return _compose_plainly(checkpoint, drafts)


def compose_stream(
    folder: NodeFolder,
    checkpoint: "StreamCheckpoint",
    failed: int,
    hide: Callable[[str], str] = str,
) -> Drafts:
    """Write result and error file of a stream, of which every item is settled, as drafts."""
    from dagster_dataops.checkpoints.publish.error_rows import draft_quarantined

    checkpoint.check_quarantine()
    dataset, modified_ns, compressed_bytes = checkpoint.draft(folder.result)
    draft_quarantined(checkpoint.quarantine, folder.errors, hide)
    return Drafts(
        dataset=dataset,
        modified_ns=modified_ns,
        records=(dataset.rows or 0) + failed,
        failed=failed,
        compressed_bytes=compressed_bytes,
    )


def _finish(drafts: DraftWriter, checkpoint: Checkpoint, *, outcomes: bool = False) -> Drafts:
    table = checkpoint.table
    return drafts.finish(
        records=table.records, failed=table.failed, dropped=table.dropped, outcomes=outcomes
    )


def _link_only_segment(checkpoint: Checkpoint, draft: JsonlWriter) -> None:
    """Make the draft a link if one segment of this run holds all of it; this spares a copy."""
    segment = checkpoint.table.only_segment()
    if segment is None or checkpoint.table.failed or checkpoint.resumed_records:
        return
    number, size = segment
    path = checkpoint.segments.file(number)
    if size and path is not None and path.stat().st_size == size:
        draft.link(path)


def _compose_plainly(checkpoint: Checkpoint, drafts: DraftWriter) -> Drafts | list[int]:
    damaged: list[int] = []
    for rows, output in joined_outputs(checkpoint.segments, checkpoint.table, damaged):
        if not damaged:  # else the remaining spans are only checked
            drafts.write(output, rows)
        del output  # before the next one is read, which takes its memory
    return damaged or _finish(drafts, checkpoint)


def _compose_keeping(
    folder: NodeFolder,
    checkpoint: Checkpoint,
    dataset: JsonlDataset,
    drafts: DraftWriter,
    *,
    outcomes: bool,
) -> Drafts | list[int]:
    damaged: list[int] = []
    check_input = dataset.fingerprint is None
    journal = _kept_journal(folder, dataset, check_input=check_input, apart=outcomes)
    with journal as keeping:
        for span, output, failed in _spans(checkpoint, dataset, drafts.errors, damaged):
            notes = checkpoint.table.notes.get(span.start)
            keeping.add(span, output, failed, notes)
            if not damaged:
                drafts.write(output[: span.output_bytes], span.emitted, notes)
        if damaged:
            return damaged
        return _mapped(_finish(drafts, checkpoint, outcomes=outcomes), keeping, checkpoint)


@contextmanager
def _kept_journal(
    folder: NodeFolder, dataset: JsonlDataset, *, check_input: bool, apart: bool = False
) -> "Iterator[KeptJournal]":
    """Yield the writer of the draft of the map."""
    from dagster_dataops.checkpoints.journal.kept_journal import KeptJournal

    path = draft_of(folder.kept)
    with (
        opened(dataset.location) as source,
        KeptJournal(path, source, check_input=check_input, apart=apart) as keeping,
    ):
        yield keeping


def _mapped(drafts: Drafts, keeping: "KeptJournal", checkpoint: Checkpoint) -> Drafts:
    """Return the drafts after the map is complete."""
    attempts = checkpoint.content.attempt_entry(drafts.dataset.fingerprint or "")
    keeping.finish(attempts, checkpoint.table.counts)
    return replace(drafts, mapped=True)


def _compose_selected(
    checkpoint: Checkpoint,
    dataset: JsonlDataset,
    drafts: DraftWriter,
    select: LineSelection,
    keeping: "AbstractContextManager[KeptJournal | None]",
) -> Drafts | list[int]:
    damaged: list[int] = []
    failed_at = array("Q")
    for _, _, failed in _spans(checkpoint, dataset, drafts.errors, damaged, select.tick):
        failed_at.extend(record.offset for record in failed)
    if damaged:
        return damaged
    with keeping as kept:
        dropped = select.write(drafts.results, failed_at, kept)
        records, failures = checkpoint.table.records, checkpoint.table.failed
        finished = drafts.finish(records=records, failed=failures, dropped=dropped)
        if kept is None or (finished.dataset.rows == records and not failures and not dropped):
            return finished
        return _mapped(finished, kept, checkpoint)


def _spans(
    checkpoint: Checkpoint,
    dataset: JsonlDataset,
    errors: JsonlWriter,
    damaged: list[int],
    tick: Callable[[], None] | None = None,
) -> "Iterator[tuple[Span, bytes, list[FailedRecord]]]":
    """Yield every span with its lines and failed records, in input order; write the error rows."""
    records = 0
    with opened(dataset.location) as source:
        counter = LineCounter(source)
        for span, output in outputs(checkpoint.segments, checkpoint.table.ordered(), damaged):
            failed: list[FailedRecord] = []
            if span.failed:
                from dagster_dataops.checkpoints.journal.failed_record import failed_records  # rare
                from dagster_dataops.checkpoints.publish.error_rows import error_row

                failed = failed_records(output[span.output_bytes :])
                for record in failed:
                    errors.write(error_row(record, dataset.location, records, counter))
            yield span, output, failed
            records += span.records
            if tick is not None:
                tick()
