"""Create checkpoints whose segments are files of earlier runs, such as a published result."""

import shutil

from dagster_dataops.checkpoints.checkpoint import CheckpointContent, folders, fresh
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.journal.kept_journal import SEGMENT
from dagster_dataops.checkpoints.journal.segments import segment_path
from dagster_dataops.checkpoints.resume.merged_outputs import put_result
from dagster_dataops.datasets.durable_files import (
    make_folder,
    storage,
    sync_folder,
    write_durably,
)


def seeded_by_result(folder: NodeFolder) -> CheckpointContent:
    """Return a new checkpoint whose only segment is the published result, as a link if possible.

    The journal is written last: without it there is no checkpoint. Folders without a journal are
    deleted.
    """
    for path in folders(folder.checkpoints):
        if not (path / "journal").exists():
            shutil.rmtree(path, ignore_errors=True)
    new = fresh(folder.checkpoints).folder
    make_folder(new)
    put_result(folder, segment_path(new, SEGMENT))
    with storage(folder.kept, "read the file"):
        journal = folder.kept.read_bytes()
    with storage(new, "sync"):
        sync_folder(new)  # after a power loss the journal must not name a missing segment
    write_durably(new / "journal", journal)
    content = CheckpointContent.read(new)
    content.retries = True
    return content
