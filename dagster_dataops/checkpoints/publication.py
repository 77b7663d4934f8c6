"""Publishing: settled spans, in input order, become the result, whole or not at all.

Result and error file are made as drafts and synced, then the manifest's draft; only then are they
renamed into place. A crash before the last draft leaves the previous result standing, a crash after
it is finished by whoever opens the folder next. Where a run wrote its outputs where they belong,
its main segment itself becomes the draft.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from dagster_dataops.checkpoints.checkpoint import Checkpoint
from dagster_dataops.checkpoints.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.reading import SegmentReader
from dagster_dataops.checkpoints.removal import Removal
from dagster_dataops.checkpoints.segments import checksum
from dagster_dataops.checkpoints.spans import Span
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.files import draft_of, storage, sync_folder, write_durably
from dagster_dataops.datasets.lines import LineCounter
from dagster_dataops.datasets.writing import JsonlWriter

if TYPE_CHECKING:
    from dagster_dataops.checkpoints.table import SpanTable

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

    def finish(self, results: JsonlWriter, errors: JsonlWriter) -> None:
        """Make both drafts durable."""
        self.dataset = results.finish()
        self.modified_ns = draft_of(results.path).stat().st_mtime_ns
        errors.finish()


def compose(folder: NodeFolder, checkpoint: Checkpoint, dataset: JsonlDataset) -> Drafts:
    """Write result and error file as drafts, checking every span on the way."""
    drafts = Drafts()
    with (
        storage(folder.path, "compose the result"),
        JsonlWriter(folder.result, checkpoint.adoptable()) as results,
        JsonlWriter(folder.errors) as errors,
        dataset.path.open("rb") as source,
    ):
        rows = ErrorRows(dataset.path, LineCounter(source.fileno()))
        batch = _Batch(results)
        for segment, span, output in _outputs(checkpoint, drafts):
            for row in rows.of_span(output[span.output_bytes :], drafts.records):
                errors.write(row)
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
            drafts.finish(results, errors)
    return drafts


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


def _outputs(checkpoint: Checkpoint, drafts: Drafts) -> Iterator[tuple[int, Span, bytes]]:
    table: SpanTable = checkpoint.table
    reader = SegmentReader(checkpoint.folder)
    try:
        for span, segment, offset in table.ordered():
            output = reader.read(segment, offset, span.output_bytes + span.error_bytes)
            if checksum(output) == span.output_check:
                yield segment, span, output
            else:
                drafts.damaged.append(span.start)
    finally:
        reader.close()


class ErrorRows:
    """Turns the error lines of spans, which know byte offsets, into rows with record and line."""

    def __init__(self, path: Path, counter: LineCounter) -> None:
        self._path = str(path)
        self._counter = counter

    def of_span(self, lines: bytes, records_before: int) -> Iterator[bytes]:
        """Yield the rows of one span; spans must come in input order."""
        for line in lines.splitlines():
            failure: dict[str, Any] = orjson.loads(line)
            offset = failure.pop("offset")
            row = {
                "index": records_before + failure.pop("position"),
                "path": self._path,
                "line": self._counter.line_at(offset),
                **failure,
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
        if folder.errors.exists() and not folder.errors.stat().st_size:
            folder.errors.unlink()
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
        Removal(folder).finish()
        return None
    _finish(folder)
    return manifest
