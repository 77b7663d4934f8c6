"""Claims: the right of one run to change the results of a node.

On a local disk it is a lock on the folder. On an object store it is the next number of the
journal; no lock with a time-out is trusted. A run that was overtaken finds out at its next entry.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.places.working_copies import bucket_of

if TYPE_CHECKING:
    from dagster_dataops.checkpoints.home_claim import HomeClaim

Claim: TypeAlias = "DiskClaim | HomeClaim"
"""Held from its construction until `release`."""


class DiskClaim(FolderLock):
    """A claim on a folder of a local disk, where a file is published by its new name."""

    def journal(self, path: Path) -> JournalWriter:
        """Return the writer of the journal of a checkpoint."""
        return JournalWriter(path)

    def publishing(
        self, files: Mapping[Path, Path], manifest: bytes
    ) -> AbstractContextManager[None]:
        """Publish files; inside the block they are put in place.

        Args:
            files: For each published file the file with its content: its draft, or itself.
            manifest: The manifest.

        Raises:
            LostError: Another run has taken over.
        """
        del files, manifest
        return nullcontext()


def claim_of(folder: NodeFolder, run: str, wait_seconds: float) -> Claim:
    """Return this run's claim on a node.

    Args:
        folder: Of the node.
        run: Name of this run.
        wait_seconds: Seconds to wait for a run that may be ending.

    Raises:
        FolderLockedError: Another run has it.
        StorageError: Disk or store refuse.
    """
    if bucket_of(folder.path) is None:
        return DiskClaim(folder.path, run, wait_seconds)
    from dagster_dataops.checkpoints.home_claim import HomeClaim  # only for object stores

    return HomeClaim(folder, run, wait_seconds)
