"""Publishing: settled spans, in input order, become the result, whole or not at all.

Result, error file and manifest are written as drafts and synced; the journal then says so; only
then are they renamed into place. A crash before that line leaves the previous result standing, a
crash after it is finished by whoever opens the folder next.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from dagster_dataops.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointContent,
    remove_all,
    remove_remains,
)
from dagster_dataops.checkpoints.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.reading import SegmentReader
from dagster_dataops.checkpoints.segments import checksum
from dagster_dataops.checkpoints.spans import Span, SpanTable
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
        JsonlWriter(folder.result) as results,
        JsonlWriter(folder.errors) as errors,
        dataset.path.open("rb") as source,
    ):
        rows = ErrorRows(dataset.path, LineCounter(source.fileno()))
        batch: list[bytes] = []
        pending = 0
        for span, output in _outputs(checkpoint, drafts):
            for row in rows.of_span(output[span.output_bytes :], drafts.records):
                errors.write(row)
            drafts.records += span.records
            drafts.dropped += span.dropped
            drafts.failed += span.failed
            batch.append(output[: span.output_bytes])
            pending += span.output_bytes
            if pending >= _BATCH_BYTES:
                _write(results, batch)
                pending = 0
        if not drafts.damaged:
            _write(results, batch)
            drafts.finish(results, errors)
    return drafts


def _write(writer: JsonlWriter, batch: list[bytes]) -> None:
    lines = batch[0] if len(batch) == 1 else b"".join(batch)
    batch.clear()
    if lines:
        writer.write(lines, lines.count(b"\n"))


def _outputs(checkpoint: Checkpoint, drafts: Drafts) -> Iterator[tuple[Span, bytes]]:
    table: SpanTable = checkpoint.table
    reader = SegmentReader(checkpoint.folder)
    try:
        for span, segment, offset in table.ordered():
            output = reader.read(segment, offset, span.output_bytes + span.error_bytes)
            if checksum(output) == span.output_check:
                yield span, output
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


def commit(folder: NodeFolder, checkpoint: Checkpoint, manifest: Manifest) -> None:
    """Put the drafts in place and remove every checkpoint of the node."""
    draft = draft_of(folder.manifest)
    write_durably(draft, manifest.to_bytes())
    checkpoint.mark_publishing()
    checkpoint.close()
    _rename_drafts(folder)
    remove_all(folder.checkpoints)


def _rename_drafts(folder: NodeFolder) -> None:
    """Rename the drafts that are there, the manifest last; harmless when done twice."""
    with storage(folder.path, "publish the result"):
        for path in (folder.result, folder.errors, folder.manifest):
            draft = draft_of(path)
            if draft.exists():
                draft.replace(path)
        if folder.errors.exists() and not folder.errors.stat().st_size:
            folder.errors.unlink()
        sync_folder(folder.path)


def finish_interrupted(folder: NodeFolder, found: list[CheckpointContent]) -> str | None:
    """Finish a publication that a crash cut short; return what to tell the user, if anything."""
    remove_remains(folder.checkpoints)
    for content in found:
        if content.publishing:
            if draft_of(folder.manifest).exists():
                _rename_drafts(folder)
            remove_all(folder.checkpoints)
            run = content.attempts[-1] if content.attempts else "unknown"
            return f"finished publishing the result of run {run}, which had been cut short"
    return None
