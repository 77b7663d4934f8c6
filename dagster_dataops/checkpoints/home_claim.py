"""HomeClaim: the claim of a run on a node of an object store."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.checkpoints.homes.node_home import home_of
from dagster_dataops.checkpoints.homes.object_journal import ObjectJournal
from dagster_dataops.checkpoints.homes.shipped_journal import ShippedJournal, restore
from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.errors import StorageError


class HomeClaim(FolderLock):
    """A claim on a node of an object store. The folder becomes a working copy of the store.

    Args:
        folder: Of the node.
        run: Name of this run.
        wait_seconds: Seconds to wait for a run on this machine that may be ending.

    Raises:
        FolderLockedError: Another run on this machine has it.
    """

    def __init__(self, folder: NodeFolder, run: str, wait_seconds: float) -> None:
        super().__init__(folder.path, run, wait_seconds)
        try:
            self._home = home = home_of(folder.path, folder.name)
            self._objects = ObjectJournal(home.store, home.key, run)
            self._seen = home.refresh()
            while not self._restore(folder):
                before, self._seen = self._seen, home.refresh()
                if self._seen == before:  # objects were deleted, and nothing was published
                    break
            self._known = set(folder.checkpoints.glob("*"))
            self._kept = folder.other_versions
        except BaseException:
            self.release()
            raise

    def _restore(self, folder: NodeFolder) -> bool:
        """Make the checkpoints of unfinished runs; data that the store lacks is dropped.

        Returns:
            Whether all objects were there. Another run deletes them after it has published.
        """
        shutil.rmtree(folder.checkpoints, ignore_errors=True)
        draft_of(folder.manifest).unlink(missing_ok=True)
        after = self._seen.commit if self._seen else 0
        entries = self._objects.entries(after)
        return restore(self._home.store, self._home.key, entries, folder.checkpoints)

    def journal(self, path: Path) -> JournalWriter:
        """Return the writer of the journal of a checkpoint; it sends each entry to the store."""
        known = path.parent in self._known
        return ShippedJournal(path, self._objects, self._home.store, known=known)

    @contextmanager
    def publishing(self, files: Mapping[Path, Path], manifest: bytes) -> Iterator[None]:
        """Publish files; inside the block they are put in place in the working copy.

        Raises:
            LostError: Another run has taken over.
        """
        objects, home, seen = self._objects, self._home, self._seen
        home.keep(self._kept)  # before their entries are deleted
        stored = home.upload(files, f"{objects.first:08d}-{objects.token}")
        commit = objects.append({"kind": "commit"})
        with home.locked():
            head = home.replace_head(manifest, stored, commit, seen)
            yield
            home.remember(head)
        self._seen = head
        with suppress(StorageError):  # the next publication deletes what is left
            home.remove_replaced(seen, head, objects.first)
            objects.remove_before(commit)
