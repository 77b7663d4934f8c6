"""Publishing: settled spans, in input order, become the result, whole or not at all.

Result and error file are made as drafts and synced, then the manifest's draft; only then are they
renamed into place. A crash before the last draft leaves the previous result standing, a crash after
it is finished by whoever opens the folder next. Where a run wrote its outputs where they belong,
its main segment itself becomes the draft.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.failed import FailedRecord, failed_records
from dagster_dataops.checkpoints.keeping import Keeping
from dagster_dataops.checkpoints.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.reading import outputs
from dagster_dataops.checkpoints.removal import Removal
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.files import draft_of, storage, sync_folder, write_durably
from dagster_dataops.datasets.lines import LineCounter
from dagster_dataops.datasets.writing import JsonlWriter

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
        damaged: Starts of spans whose output did not pass its checksum; if there are any, the
            drafts are of no use and those spans must be done again.
    """

    dataset: JsonlDataset | None = None
    modified_ns: int = 0
    records: int = 0
    dropped: int = 0
    failed: int = 0
    damaged: list[int] = field(default_factory=list)

    def finish(self, results: JsonlWriter, errors: JsonlWriter) -> JsonlDataset:
        """Make both drafts durable and return the result as it will be."""
        self.dataset = results.finish()
        self.modified_ns = draft_of(results.path).stat().st_mtime_ns
        errors.finish()
        return self.dataset


def compose(folder: NodeFolder, checkpoint: Checkpoint, dataset: JsonlDataset) -> Drafts:
    """Write result and error file as drafts, checking every span on the way.

    If any records failed, there is a third draft: what a retry of these alone goes on from.
    """
    drafts = Drafts()
    with (
        storage(folder.path, "compose the result"),
        JsonlWriter(folder.result, checkpoint.adoptable()) as results,
        JsonlWriter(folder.errors) as errors,
        dataset.path.open("rb") as source,
        _keeping(folder, checkpoint, dataset, source.fileno()) as keeping,
    ):
        rows = ErrorRows(dataset.path, LineCounter(source.fileno()))
        batch = _Batch(results)
        for segment, span, output in outputs(checkpoint.folder, checkpoint.table, drafts.damaged):
            failed = failed_records(output[span.output_bytes :]) if span.failed else []
            for row in rows.of_span(failed, drafts.records):
                errors.write(row)
            if keeping is not None:
                keeping.add(span, output, [record.place for record in failed])
            drafts.records += span.records
            drafts.dropped += span.dropped
            drafts.failed += span.failed
            if drafts.damaged:
                continue  # the rest is only looked through: places are no longer known
            if segment == checkpoint.main_segment and results.adopted:
                batch.write()
                results.keep(output, span.emitted)
            else:
                batch.add(output[: span.output_bytes], span.emitted)
        if not drafts.damaged:
            batch.write()
            made = drafts.finish(results, errors)
            if keeping is not None:
                keeping.finish(checkpoint.told(result=made.fingerprint))
    return drafts


def _keeping(
    folder: NodeFolder, checkpoint: Checkpoint, dataset: JsonlDataset, source: int
) -> AbstractContextManager[Keeping | None]:
    if not checkpoint.table.failed:
        return nullcontext()
    return Keeping(draft_of(folder.kept), source if dataset.fingerprint is None else None)


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


def commit(folder: NodeFolder, manifest: Manifest) -> None:
    """Put the drafts in place and remove every checkpoint of the node.

    The manifest's draft, once it is there, says that the other drafts are complete and durable
    and that only renames are left.
    """
    write_durably(draft_of(folder.manifest), manifest.to_bytes())
    _finish(folder)


def _finish(folder: NodeFolder) -> None:
    """Do what follows a manifest's draft; harmless when done twice."""
    removal = Removal(folder)
    removal.spare(folder.result)
    with storage(folder.path, "publish the result"):
        _replace(folder.result)
        _replace(folder.errors)
        _replace(folder.kept)
        if folder.errors.exists() and not folder.errors.stat().st_size:
            folder.errors.unlink()
        if not folder.errors.exists():
            folder.kept.unlink(missing_ok=True)
        removal.remove_checkpoints()
        _replace(folder.manifest)  # the last: until then, all this is done again after a crash
        sync_folder(folder.path)
    removal.finish()


def _replace(path: Path) -> None:
    draft = draft_of(path)
    if draft.exists():
        draft.replace(path)


def finish_interrupted(folder: NodeFolder) -> Manifest | None:
    """Finish a publication that a crash cut short; return its manifest, if there was one."""
    manifest = Manifest.load(draft_of(folder.manifest))
    if manifest is None:
        draft_of(folder.kept).unlink(missing_ok=True)  # operators that make none leave it alone
        Removal(folder).finish()
        return None
    _finish(folder)
    return manifest
