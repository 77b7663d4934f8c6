"""Composing: settled spans, in input order, become drafts of result and error file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.journal.failed_place import FailedRecord, failed_records
from dagster_dataops.checkpoints.journal.kept_journal import Keeping
from dagster_dataops.checkpoints.journal.segment_reader import joined_outputs, outputs
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import draft_of, storage
from dagster_dataops.datasets.lines import LineCounter
from dagster_dataops.datasets.writer import JsonlWriter

_BATCH_BYTES: Final = 1 << 20


@dataclass
class Drafts:
    """The complete drafts of a result and its error file.

    Attributes:
        dataset: The result, as it will be once in place.
        modified_ns: Modification time of its file.
        records: Input records.
        dropped: Input records that emitted nothing and did not fail.
        failed: Records in the error file's draft.
        outcomes: Whether what is kept says of every record what became of it.
        damaged: Starts of spans whose output did not pass its checksum; if there are any, the
            drafts are of no use and those spans must be done again.
    """

    dataset: JsonlDataset | None = None
    modified_ns: int = 0
    records: int = 0
    dropped: int = 0
    failed: int = 0
    outcomes: bool = False
    damaged: list[int] = field(default_factory=list)

    def finish(self, results: JsonlWriter, errors: JsonlWriter) -> JsonlDataset:
        """Make both drafts durable and return the result as it will be.

        There is no draft of an empty error file: syncing it would cost as much as a small result.
        """
        self.dataset = results.finish()
        self.modified_ns = draft_of(results.path).stat().st_mtime_ns
        if errors.rows:
            errors.finish()
        return self.dataset


def compose(
    folder: NodeFolder, checkpoint: Checkpoint, dataset: JsonlDataset, *, outcomes: bool = False
) -> Drafts:
    """Write result and error file as drafts, checking every span on the way.

    If any records failed, there is a third draft: what a retry of these alone goes on from.

    Args:
        folder: Of the operator's node.
        checkpoint: With every record settled.
        dataset: The input.
        outcomes: Whether that third draft is made in any case, and every outcome can be found in
            it by its input.
    """
    table = checkpoint.table
    drafts = Drafts(
        records=table.records, dropped=table.dropped, failed=table.failed, outcomes=outcomes
    )
    with (
        storage(folder.path, "compose the result"),
        JsonlWriter(folder.result) as results,
        JsonlWriter(folder.errors) as errors,
    ):
        if table.failed or outcomes:
            _compose_keeping(folder, checkpoint, dataset, drafts, results, errors)
        else:
            _compose_plainly(checkpoint, drafts, results, errors)
    return drafts


def _compose_plainly(
    checkpoint: Checkpoint, drafts: Drafts, results: JsonlWriter, errors: JsonlWriter
) -> None:
    parts = joined_outputs(checkpoint.folder, checkpoint.table, drafts.damaged)
    for rows, output in parts:
        if not drafts.damaged:  # else the remaining spans are only checked
            results.write(output, rows)
    if not drafts.damaged:
        drafts.finish(results, errors)


def _compose_keeping(
    folder: NodeFolder,
    checkpoint: Checkpoint,
    dataset: JsonlDataset,
    drafts: Drafts,
    results: JsonlWriter,
    errors: JsonlWriter,
) -> None:
    records = 0
    batch = _Batch(results)
    with (
        dataset.path.open("rb") as source,
        Keeping(
            draft_of(folder.kept),
            source.fileno(),
            check_input=dataset.fingerprint is None,
            apart=drafts.outcomes,
        ) as keeping,
    ):
        rows = ErrorRows(dataset.path, LineCounter(source.fileno()))
        for span, output in outputs(checkpoint.folder, checkpoint.table, drafts.damaged):
            failed = failed_records(output[span.output_bytes :]) if span.failed else []
            for row in rows.of_span(failed, records):
                errors.write(row)
            keeping.add(span, output, [record.place for record in failed])
            records += span.records
            if not drafts.damaged:
                batch.add(output[: span.output_bytes], span.emitted)
        if not drafts.damaged:
            batch.write()
            made = drafts.finish(results, errors)
            keeping.finish(checkpoint.told(result=made.fingerprint))


class _Batch:
    """Outputs on their way to the result, written a megabyte at a time."""

    def __init__(self, writer: JsonlWriter) -> None:
        self._writer = writer
        self._outputs: list[bytes] = []
        self._rows = self._bytes = 0

    def add(self, output: bytes, rows: int) -> None:
        self._outputs.append(output)
        self._rows += rows
        self._bytes += len(output)
        if self._bytes >= _BATCH_BYTES:
            self.write()

    def write(self) -> None:
        if self._bytes:
            self._writer.write(b"".join(self._outputs), self._rows)
            self._outputs.clear()
            self._rows = self._bytes = 0


class ErrorRows:
    """Turns the error lines of spans, which know byte offsets, into rows with record and line."""

    def __init__(self, path: Path, counter: LineCounter) -> None:
        self._path = str(path)
        self._counter = counter

    def of_span(self, failed: Sequence[FailedRecord], records_before: int) -> Iterator[bytes]:
        """Yield the rows of one span; spans must come in input order."""
        for place, told in failed:
            row = {
                "index": records_before + place.position,
                "path": self._path,
                "line": self._counter.line_at(place.offset),
                **told,
            }
            yield orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
