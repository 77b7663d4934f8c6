"""`BucketClaim`: the claim of a run on a node whose files are in a bucket."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple

from xxhash import xxh3_64_hexdigest

from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.checkpoints.journal.journal_reader import format_of, is_read
from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.checkpoints.journal.kept_journal import SEGMENT
from dagster_dataops.checkpoints.journal.segments import segment_path
from dagster_dataops.checkpoints.journal.sent_pieces import Piece, SentPlace
from dagster_dataops.checkpoints.places.node_place import Claim, Outputs
from dagster_dataops.checkpoints.places.object_journal import ObjectJournal
from dagster_dataops.checkpoints.places.published_objects import PublishedObjects
from dagster_dataops.checkpoints.places.sent_segments import SentSegments
from dagster_dataops.checkpoints.places.shipped_journal import (
    ShippedJournal,
    StageJournal,
    restore,
)
from dagster_dataops.checkpoints.places.uploaded_draft import UploadedDraft, uploading
from dagster_dataops.datasets.durable_files import COPY_BYTES, draft_file, draft_of, storage
from dagster_dataops.datasets.published_files import (
    CHECKPOINTS,
    JOURNAL,
    MANIFEST,
    OTHER_VERSIONS,
    node_of,
    result_name,
)
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.errors import StorageError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import (
    VERSIONS,
    BucketFile,
    CopiedFile,
    Location,
    local_path,
)
from dagster_dataops.foundation.places.joined_object import DATA, PartList, pieces_of
from dagster_dataops.foundation.places.opening import FORMS, is_compressed, opened, state_at
from dagster_dataops.foundation.places.range_source import read_blocks, size_of

_MOST_KEPT: Final = 2  # times the size of a result: the objects that its list of parts keeps


class _PublishedText(NamedTuple):
    """A published result in one file.

    Attributes:
        name: The name of the file.
        key: The key of its object, or of the list of its parts.
        size: The size of its text.
        digest: The digest of its text.
    """

    name: str
    key: str
    size: int
    digest: str


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
            self._drafts: dict[Path, UploadedDraft] = {}
            self._inputs: set[str] = set()  # the keys of those that were sent
            self._objects = ObjectJournal(place.writable, place.key, run)
            self._seen = place.fetch(whole=False)
            while not self._restore():
                before, self._seen = self._seen, place.fetch(whole=False)
                if self._seen == before:  # objects were deleted, and nothing was published
                    break
            self._known = set(self._checkpoints.glob("*"))
        except BaseException:
            self.release()
            raise

    def _restore(self) -> bool:
        """Make the journals of unfinished runs; return whether all objects were still there."""
        place = self._place
        shutil.rmtree(self._checkpoints, ignore_errors=True)
        draft_of(place.folder / f"{place.name}{MANIFEST}").unlink(missing_ok=True)
        self._segments.clear()
        after = self._seen.commit if self._seen else 0
        whole = restore(self._objects, after, self._checkpoints, self.segments, self._take)
        for folder, segments in self._segments.items():
            format_ = format_of(folder / JOURNAL)
            if format_ and not is_read(format_):  # it is kept whole for another version
                segments.fetch()
        return whole

    @override
    def segments(self, folder: Path) -> SentSegments:
        known = self._segments.get(folder)
        if known is None:
            known = self._segments[folder] = SentSegments(
                folder, self._place.writable, self._check_held
            )
        return known

    def _check_held(self) -> None:
        """Check that no other run has taken the node over, or has published since."""
        self._objects.check_held()
        self._place.check_head(self._seen)

    @override
    def journal(self, path: Path) -> JournalWriter:
        """Return the writer of the journal of a checkpoint; it sends each entry to the store."""
        known = path.parent in self._known
        segments = self.segments(path.parent)
        return ShippedJournal(path, self._objects, self._place.writable, segments, known=known)

    @override
    def journal_of_stage(self, path: Path) -> JournalWriter:
        segments = SentSegments(path.parent, self._place.writable, self._check_held)
        return StageJournal(path, self._objects, segments)

    @override
    def take_result(self, path: Path) -> bool:
        result = self._result
        if result is None or not self._place.store.shared:
            return False
        segments = self.segments(path.parent)
        if path.name in segments.names():
            return segments.taken is not None
        return self._take(path.parent, Piece(path.name, 0, result.size), result.digest)

    @property
    def _result(self) -> _PublishedText | None:
        """The published result, if it is one file of records."""
        head = self._seen
        if head is None or not head.is_one_file:
            return None
        digest, size = head.content.get("fingerprint"), head.content.get("size_bytes")
        names = (result_name(self._place.name, form) for form in FORMS)
        keys = ((name, head.files[name]["key"]) for name in names if name in head.files)
        name, key = next(keys, ("", ""))
        if not name or not digest or not isinstance(size, int):
            return None
        return _PublishedText(name, key, size, str(digest))

    def _take(self, folder: Path, piece: Piece, digest: str) -> bool:
        """Use the published result as a file of a checkpoint.

        Returns:
            Whether it is used. It is not if its digest is another one, or if objects with its bytes
            are missing.
        """
        place, result = self._place, self._result
        path = segment_path(folder, SEGMENT)
        whole = Piece(path.name, 0, result.size) if result else None
        if result is None or (piece, digest) != (whole, result.digest):
            return False
        segments = self.segments(folder)
        if is_compressed(result.name):
            copy = folder / result.name
            if place.link_copy(result.name, copy):
                segments.take_text(piece, digest, copy)
            elif place.store.status(result.key) is not None:
                segments.take_text(piece, digest, BucketFile(place.bucket, result.key))
            return segments.taken is not None
        place.link_copy(result.name, path)
        there = self._objects.listed.union(place.store.names(f"{place.key}/{VERSIONS}"))
        pieces = pieces_of(place.store, result.key, piece.end)
        found = takewhile(lambda one: one[0] in there, pieces)
        return segments.take(piece, digest, found)

    @override
    def sent_place(self) -> SentPlace | None:
        if not self._place.bucket.reached_by_others:
            return None
        objects = self._objects
        folder, claim = objects.data_key("").rstrip("/"), objects.entry_key(objects.first)
        after = self._seen.commit if self._seen else 0  # in each attempt before a publication
        parts = objects.data_key(f"{after + 1:08d}-parts-")
        return SentPlace(self._place.bucket, folder, self._version, claim, parts)

    @override
    def shared_input(self, location: Location) -> Location:
        """Return the object that a file in a working copy is a copy of; another file is sent."""
        place, path = self.sent_place(), local_path(location)
        bucket = location.bucket if isinstance(location, CopiedFile) else self._place.bucket
        if place is None or path is None or not path.is_relative_to(bucket.folder):
            return location
        result = PublishedObjects(bucket, path.parent, node_of(path.name))
        return result.object_of(path) or self._send_input(place, path)

    def _send_input(self, place: SentPlace, path: Path) -> BucketFile:
        state = state_at(path)
        digest = xxh3_64_hexdigest(f"{path}\0{state.size}\0{state.modified_ns}".encode())
        key = f"{place.folder}/{place.mark}-input-{digest}"
        if key not in self._inputs:
            with (
                opened(path) as source,
                storage(path, "send it to the bucket"),
                uploading(self._place.writable, key, size_of(source)) as upload,
            ):
                for block in read_blocks(source, COPY_BYTES):
                    upload.write(block)
            self._inputs.add(key)
        return BucketFile(place.bucket, key)

    @override
    def writer(
        self, path: Path, outputs: Outputs | None = None, whole_bytes: float = 0
    ) -> JsonlWriter:
        key = self._place.version_key(self._version, path)
        store = self._place.writable
        if not store.shared:
            return JsonlWriter(path)
        stays = not is_compressed(path.name)
        parts = self._parts(outputs, whole_bytes) if outputs and stays else None
        expected = sum(segments.sent_bytes() for segments in self._segments.values())
        draft = self._drafts[path] = UploadedDraft(path, store, key, expected, parts)
        return draft

    def _parts(self, outputs: Outputs, whole_bytes: float) -> PartList | None:
        """Return where the outputs of a checkpoint are; ``None`` to write them as one object."""
        table, segments = outputs.table, self.segments(outputs.folder)
        if sum(table.column("output_bytes")) <= whole_bytes:
            return None
        outputs.check_synced()
        outputs.sync()
        places = ((segment, offset, length) for _, _, length, _, segment, offset in table.places())
        parts = segments.parts(places)
        return parts if parts and (segments.taken is None or self._is_dense(parts)) else None

    def _is_dense(self, parts: PartList) -> bool:
        """Return whether a list of parts keeps objects of at most twice its size.

        Else results of which a part is used again, night after night, would keep ever more objects.
        """
        store, key = self._place.store, self._place.key
        stored = store.listed(f"{key}/{DATA}") | store.listed(f"{key}/{VERSIONS}")
        sizes = (stored[one].status.size for one in parts.keys(f"{key}/{DATA}") if one in stored)
        return sum(sizes) <= _MOST_KEPT * sum(parts.lengths)

    @property
    def _version(self) -> str:
        """The name for the files of a publication of this attempt."""
        return f"{self._objects.first:08d}-{self._objects.token}"

    @override
    def draft(self, path: Path) -> Location | None:
        draft = self._drafts.get(path)
        if draft is not None and draft.uploaded:
            return BucketFile(self._place.bucket, draft.key)
        return draft_file(path)

    def _stored(self, files: Mapping[Path, Location]) -> dict[str, dict[str, Any]]:
        """Store files that are not in the bucket; return `NodeHead.files`."""
        place = self._place
        in_bucket = {
            path: draft
            for path, draft in self._drafts.items()
            if files.get(path, path) != path and (draft.uploaded or draft.parts is not None)
        }
        here = {path: file for path, file in files.items() if isinstance(file, Path)}
        stored = place.upload(
            {path: file for path, file in here.items() if path not in in_bucket}, self._version
        )
        for path, draft in in_bucket.items():
            if draft.parts is not None and not draft.uploaded:
                place.writable.put(draft.key, draft.parts.to_bytes())
            size = draft.stored_bytes if draft.parts is None else draft.size_bytes
            facts = {"key": draft.key, "size": size, "modified_ns": draft.modified_ns}
            stored[path.relative_to(place.folder).as_posix()] = facts
        for path, file in files.items():
            if isinstance(file, BucketFile) and path not in in_bucket:  # of an earlier version
                status = (draft_file(path) or path).stat()
                size, modified_ns = status.st_size, status.st_mtime_ns
                facts = {"key": file.key, "size": size, "modified_ns": modified_ns}
                stored[path.relative_to(place.folder).as_posix()] = facts
        return stored

    @override
    @contextmanager
    def publishing(self, files: Mapping[Path, Location], manifest: bytes) -> Iterator[None]:
        objects, place, seen = self._objects, self._place, self._seen
        place.keep(place.folder / OTHER_VERSIONS)  # before their entries are deleted
        stored = self._stored(files)
        commit = objects.append({"kind": "commit"})
        with place.locked():
            head = place.replace_head(manifest, stored, commit, seen)
            yield
            place.remove_stale(head)
            place.remember(head)
        self._seen = head
        with suppress(StorageError):  # the next publication deletes what is left
            used = place.objects_in_use(head)
            drafts = {draft.key for draft in self._drafts.values() if draft.uploaded}
            place.writable.remove(sorted(drafts - used))  # the result had their bytes already
            place.remove_replaced(seen, used, objects.first)
            objects.remove_before(commit, used)
