"""`BucketClaim`: the claim of a run on a node whose files are in a bucket."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from typing_extensions import override

from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.checkpoints.journal.journal_reader import format_of, is_read
from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.checkpoints.places.node_place import Claim
from dagster_dataops.checkpoints.places.object_journal import ObjectJournal
from dagster_dataops.checkpoints.places.published_objects import PublishedObjects
from dagster_dataops.checkpoints.places.sent_segments import SentSegments
from dagster_dataops.checkpoints.places.shipped_journal import ShippedJournal, restore
from dagster_dataops.datasets.durable_files import draft_of
from dagster_dataops.datasets.published_files import CHECKPOINTS, MANIFEST, OTHER_VERSIONS
from dagster_dataops.errors import StorageError


class BucketClaim(FolderLock, Claim):
    """A claim on a node in a bucket. It locks the folder, and makes it a working copy of the node.

    Args:
        place: The published files of the node.
        run: Name of this run.
        wait_seconds: Seconds to wait for a run on this machine that may be ending.

    Raises:
        FolderLockedError: Another run on this machine has it.
    """

    def __init__(self, place: PublishedObjects, run: str, wait_seconds: float) -> None:
        super().__init__(place.folder, run, wait_seconds)
        try:
            self._place = place
            self._checkpoints = place.folder / CHECKPOINTS
            self._segments: dict[Path, SentSegments] = {}
            self._objects = ObjectJournal(place.store, place.key, run)
            self._seen = place.fetch()
            while not self._restore():
                before, self._seen = self._seen, place.fetch()
                if self._seen == before:  # objects were deleted, and nothing was published
                    break
            self._known = set(self._checkpoints.glob("*"))
        except BaseException:
            self.release()
            raise

    def _restore(self) -> bool:
        """Make the journals of unfinished runs; their outputs stay in the store.

        Returns:
            Whether all objects were there. Another run deletes them after it has published.
        """
        place = self._place
        shutil.rmtree(self._checkpoints, ignore_errors=True)
        draft_of(place.folder / f"{place.name}{MANIFEST}").unlink(missing_ok=True)
        self._segments.clear()
        after = self._seen.commit if self._seen else 0
        whole = restore(self._objects, after, self._checkpoints, self.segments)
        for folder, segments in self._segments.items():
            format_ = format_of(folder / "journal")
            if format_ and not is_read(format_):  # it is kept whole for another version
                segments.fetch()
        return whole

    @override
    def segments(self, folder: Path) -> SentSegments:
        known = self._segments.get(folder)
        if known is None:
            known = self._segments[folder] = SentSegments(folder, self._place.store)
        return known

    @override
    def journal(self, path: Path) -> JournalWriter:
        """Return the writer of the journal of a checkpoint; it sends each entry to the store."""
        known = path.parent in self._known
        segments = self.segments(path.parent)
        return ShippedJournal(path, self._objects, self._place.store, segments, known=known)

    @override
    @contextmanager
    def publishing(self, files: Mapping[Path, Path], manifest: bytes) -> Iterator[None]:
        objects, place, seen = self._objects, self._place, self._seen
        place.keep(place.folder / OTHER_VERSIONS)  # before their entries are deleted
        stored = place.upload(files, f"{objects.first:08d}-{objects.token}")
        commit = objects.append({"kind": "commit"})
        with place.locked():
            head = place.replace_head(manifest, stored, commit, seen)
            yield
            place.remember(head)
        self._seen = head
        with suppress(StorageError):  # the next publication deletes what is left
            place.remove_replaced(seen, head, objects.first)
            objects.remove_before(commit)
