"""Make checkpoints in which only the failed records of an earlier run are open."""

import os
import shutil
from contextlib import closing
from pathlib import Path

from dagster_dataops.checkpoints.checkpoint import CheckpointContent, folders, fresh
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.journal.failed_place import failed_records
from dagster_dataops.checkpoints.journal.kept_journal import SEGMENT, KeptJournal
from dagster_dataops.checkpoints.journal.segment_reader import outputs
from dagster_dataops.checkpoints.journal.segments import SegmentWriter, segment_path
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import (
    draft_of,
    make_folder,
    storage,
    sync_folder,
    write_durably,
)
from dagster_dataops.datasets.writer import link_or_copy


def seeded_by_result(folder: NodeFolder) -> CheckpointContent:
    """Return a new checkpoint whose only segment is the published result, as a link if possible.

    The journal is written last: without it there is no checkpoint.
    """
    new = new_folder(folder)
    segment = segment_path(new, SEGMENT)
    source = folder.result.resolve()
    link_or_copy(source, segment)
    with storage(folder.kept, "read the file"):
        journal = folder.kept.read_bytes()
    with storage(new, "sync"):
        sync_folder(new)  # a journal whose segment has no name would lose records
    write_durably(new / "journal", journal)
    return _seeded(new)


def seeded_by_unfinished(
    folder: NodeFolder, content: CheckpointContent, dataset: JsonlDataset
) -> CheckpointContent:
    """Return a new checkpoint with a copy of the records of ``content`` that did not fail.

    Damaged spans are left out.
    """
    new = new_folder(folder)
    try:
        _copy(content, new, dataset)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return _seeded(new)


def _copy(content: CheckpointContent, new: Path, dataset: JsonlDataset) -> None:
    draft = draft_of(new / "journal")
    with (
        dataset.path.open("rb") as source,
        closing(SegmentWriter(new, SEGMENT)) as segment,
        KeptJournal(
            draft,
            source.fileno(),
            check_input=dataset.fingerprint is None,
            apart=content.digests,
        ) as keeping,
    ):
        for span, output in outputs(content.folder, content.table, []):
            failed = failed_records(output[span.output_bytes :]) if span.failed else []
            segment.append(output[: span.output_bytes])
            keeping.add(span, output, [record.place for record in failed])
        with storage(segment.path, "sync"):
            os.fdatasync(segment.descriptor)
        keeping.finish(content.attempt_entries())
    with storage(draft, "put it in place"):
        sync_folder(new)  # a journal whose segment has no name would lose records
        draft.replace(new / "journal")


def new_folder(folder: NodeFolder) -> Path:
    """Make the folder of a new checkpoint and return it; delete folders without a journal."""
    for path in folders(folder.checkpoints):
        if not (path / "journal").exists():
            shutil.rmtree(path, ignore_errors=True)
    new = fresh(folder.checkpoints).folder
    make_folder(new)
    return new


def _seeded(new: Path) -> CheckpointContent:
    content = CheckpointContent.read(new)
    content.retries = True
    return content
