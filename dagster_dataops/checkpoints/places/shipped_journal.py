"""ShippedJournal: a journal in a working copy, whose entries and outputs are sent to its store.

`StageJournal` is that of a stage of a step: its entries stay on this machine.

Entries are collected, and sent by `sync`: first the outputs that they refer to as one object, then
an entry of the `ObjectJournal` with the frames. So a flush takes two requests, however many
workers there are. More outputs than fit in memory at once are sent in several steps. Outputs of
agents are in the bucket already: the entry names their objects. So is the published result whose
failed records are retried, or whose outcomes are used again: the entry has its digest.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.checkpoints.journal.positions import Position, StageParts
from dagster_dataops.checkpoints.journal.segments import segment_path
from dagster_dataops.checkpoints.journal.sent_pieces import (
    PUBLISHED,
    Piece,
    SentObject,
    in_steps,
    note_sent,
    read_back,
)
from dagster_dataops.checkpoints.journal.span import ReopenedEntry, SpansEntry
from dagster_dataops.checkpoints.places.object_journal import ObjectJournal
from dagster_dataops.checkpoints.places.sent_segments import FILE, SentSegments
from dagster_dataops.datasets.durable_files import make_folder, storage
from dagster_dataops.datasets.published_files import JOURNAL
from dagster_dataops.errors import PathEscapeError, StorageError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.confined_names import is_plain
from dagster_dataops.foundation.places.result_store import ResultStore

_STREAM_SEGMENT: Final = 1
_QUARANTINE: Final = "quarantine.jsonl"


class StageJournal(JournalWriter):
    """Appends entries to a journal on this machine; agents may have put the outputs in the bucket.

    Only the present attempt reads it. The objects of the parts tell the next one, perhaps on
    another machine, which tasks are done.

    Args:
        path: The file in the working copy.
        objects: The journal of the node on the store.
        segments: Of the stage; learns what was sent.
    """

    on_disk = False

    def __init__(self, path: Path, objects: ObjectJournal, segments: SentSegments) -> None:
        self._objects, self._segments = objects, segments
        super().__init__(path)

    @property
    @override
    def segments(self) -> SentSegments:
        return self._segments

    @override
    def sync(self, segments: Iterable[Path] = ()) -> None:
        """Do nothing: the next attempt makes the folder anew."""

    @override
    def sent(self, objects: Iterable[SentObject]) -> None:
        for sent in objects:
            self._segments.add(sent.pieces, self._objects.data_key(sent.name), here=False)


class ShippedJournal(StageJournal):
    """Appends entries to a journal, and sends them to a store.

    Args:
        path: The file in the working copy.
        objects: The journal of the node on the store.
        store: The store.
        segments: Of the checkpoint; learns what was sent.
        known: Whether the store has the entries that the file has already.
    """

    sync_share = 1
    least_seconds = 0.5  # two requests each
    sends = True

    def __init__(
        self,
        path: Path,
        objects: ObjectJournal,
        store: ResultStore,
        segments: SentSegments,
        *,
        known: bool,
    ) -> None:
        self._store = store
        self._number = int(path.parent.name)
        self._pending = threading.Lock()
        self._frames = bytearray()
        self._pieces: list[Piece] = []
        self._others: list[SentObject] = []  # of agents, and the published result
        self._elsewhere: set[str] = set()  # files whose bytes are in the store
        self._sent = {segment_path(path.parent, _STREAM_SEGMENT).name: 0, _QUARANTINE: 0}
        self._taken: SentObject | None = None
        self._note_taken(segments, sent=known)
        if not known and path.exists():
            self._frames += path.read_bytes()
            files = sorted(path.parent.glob("segment-*.jsonl"))
            self._pieces = [
                Piece(file.name, 0, file.stat().st_size)
                for file in files
                if file.name not in self._elsewhere
            ]
            self.unsent_bytes = _size(self._pieces)
        super().__init__(path, objects, segments)

    def _note_taken(self, segments: SentSegments, *, sent: bool) -> None:
        """Note that the published result is a segment.

        Args:
            segments: The segments.
            sent: Whether the store has the entry about it.
        """
        taken = segments.taken
        if taken is not None and taken != self._taken:
            with self._pending:
                self._elsewhere.update(piece.name for piece in taken.pieces)
                self._others += [] if sent else [taken]
            self._taken = taken

    @override
    def taken(self) -> None:
        self._note_taken(self._segments, sent=False)

    @override
    def append(self, frames: bytes) -> None:
        super().append(frames)
        with self._pending:
            self._frames += frames

    @override
    def spans(self, entry: SpansEntry) -> None:
        self._add_output(entry)
        super().spans(entry)

    @override
    def reopened(self, entry: ReopenedEntry, parts: SpansEntry | None) -> None:
        if parts is not None:
            self._add_output(parts)
        super().reopened(entry, parts)

    @override
    def begin_at(self, size: int, quarantined: int) -> None:
        self._segments.keep_whole()
        self._sent = dict(zip(self._sent, (size, quarantined), strict=True))

    @override
    def stages(self, stages: StageParts) -> None:
        self._segments.keep_whole()
        super().stages(stages)

    @override
    def position(self, position: Position) -> None:
        ends = (position.size, position.quarantined.size)
        for (name, start), end in zip(list(self._sent.items()), ends, strict=True):
            self._add(Piece(name, start, end))
            self._sent[name] = end
        super().position(position)

    def _add_output(self, entry: SpansEntry) -> None:
        name = segment_path(self.path.parent, entry.segment).name
        self._add(Piece(name, entry.offset, entry.offset + entry.output_bytes))

    @override
    def sent(self, objects: Iterable[SentObject]) -> None:
        for sent in objects:
            with self._pending:
                self._others.append(sent)
                self._elsewhere.update(piece.name for piece in sent.pieces)
            super().sent([sent])

    def _add(self, piece: Piece) -> None:
        if piece.end <= piece.start or piece.name in self._elsewhere:
            return
        with self._pending:
            self.unsent_bytes += _size([piece])
            if self._pieces and self._pieces[-1][::2] == (piece.name, piece.start):
                piece = self._pieces.pop()._replace(end=piece.end)
            self._pieces.append(piece)

    @override
    def sync(self, segments: Iterable[Path] = ()) -> None:
        """Send the bytes that were appended since the last call.

        Raises:
            LostError: Another run has taken the node over.
            StorageError: The store cannot be reached; the next call tries again.
        """
        with self._pending:
            frames, self._frames = self._frames, bytearray()
            pieces, self._pieces = self._pieces, []
            others, self._others = self._others, []
        steps = in_steps(pieces)
        try:
            while len(steps) > 1:
                self._send(steps[0], b"")
                del steps[0]
            if steps[0] or frames or others:
                self._send(steps[0], bytes(frames), others)
        except StorageError:
            with self._pending:
                self._frames[:0] = frames
                self._pieces[:0] = [piece for step in steps for piece in step]
                self._others[:0] = others
            raise

    def _send(self, pieces: list[Piece], frames: bytes, others: Sequence[SentObject] = ()) -> None:
        head: dict[str, object] = {"kind": "work", "checkpoint": self._number}
        key = self._objects.next_data
        name = key.rpartition("/")[2]
        if pieces:
            self._store.put(key, b"".join(read_back(self.path.parent, pieces)))
            for file, end in {piece.name: piece.end for piece in pieces}.items():
                note_sent(self.path.parent / file, end)
            head |= {"data": name, "pieces": [list(piece) for piece in pieces]}
        if others:  # versions that do not know the last values of a piece refuse the entry
            objects = [*([SentObject(name, pieces)] if pieces else ()), *others]
            named = [
                [*piece, sent.name, *([sent.digest] if sent.digest else ())]
                for sent in objects
                for piece in sent.pieces
            ]
            head |= {"data": objects[0].name, "pieces": named}
        self._objects.append(head, frames)
        self._segments.add(pieces, key, here=True)
        with self._pending:
            self.unsent_bytes -= _size(pieces)


def restore(
    objects: ObjectJournal,
    after: int,
    folder: Path,
    segments_of: Callable[[Path], SentSegments],
    take: Callable[[Path, Piece, str], bool],
) -> bool:
    """Make the journals of unfinished runs from the entries of a node.

    Outputs are not fetched; the spans of missing ones fail their checksums. Others may write to
    the bucket, so only the files of a checkpoint are written.

    Args:
        objects: The journal of the node.
        after: The number of the latest publication.
        folder: The folder of the checkpoints in the working copy.
        segments_of: Return the segments of a checkpoint, which learn where their outputs are.
        take: Use the published result with a digest as a file of a checkpoint; return whether the
            store has it.

    Returns:
        Whether no entry was missing, and no object with outputs.

    Raises:
        PathEscapeError: An entry names another file than those of a checkpoint.
        StorageError: An entry is damaged.
    """
    whole = True
    for entry in objects.entries(after):
        number = entry.head.get("checkpoint")
        if type(number) is not int or number < 0:
            whole = whole and bool(entry.head)
            continue
        place = folder / str(number)
        make_folder(place)
        for sent in _objects_in(entry.head, objects.url(entry.number)):
            if sent.digest:
                whole = take(place, sent.pieces[0], sent.digest) and whole
                continue
            key = objects.data_key(sent.name)
            whole = whole and key in objects.listed
            segments_of(place).add(sent.pieces, key, here=False)
        with storage(place, "write the journal"), (place / JOURNAL).open("ab") as file:
            file.write(entry.frames)
    return whole


def _size(pieces: Iterable[Piece]) -> int:
    return sum(end - start for _, start, end in pieces)


def _objects_in(head: Mapping[str, Any], url: str) -> list[SentObject]:
    """Return the objects with the outputs of an entry."""
    if "data" not in head:
        return []
    objects = {head["data"]: SentObject(head["data"], [])} if is_plain(head["data"]) else {}
    if not objects:
        raise PathEscapeError(url, head["data"])
    try:
        for name, start, end, *rest in head.get("pieces") or ():
            key, digest = _named(rest, head["data"])
            _check_piece(name, start, end, key, url)
            piece = Piece(name, start, end)
            if key == PUBLISHED or digest:
                _check_digest(key, digest)
                objects[key] = SentObject(key, [piece], digest)
            else:
                objects.setdefault(key, SentObject(key, [])).pieces.append(piece)
    except PathEscapeError:
        raise
    except (TypeError, ValueError):
        reason = "the entry of the journal is damaged"
        raise StorageError(url, "restore the checkpoint", reason) from None
    return list(objects.values())


def _named(values: list[Any], usual: str) -> tuple[Any, Any]:
    """Return the last two values of a piece: the name of its object, and a digest.

    Args:
        values: None, the name, or both.
        usual: The name if there is none.
    """
    if len(values) < 2:
        return (values[0] if values else usual), ""
    name, digest = values
    return name, digest


def _check_digest(key: str, digest: object) -> None:
    """Check that a digest is that of the published result."""
    if key != PUBLISHED or not isinstance(digest, str) or not digest:
        raise ValueError(key, digest)


def _check_piece(name: object, start: object, end: object, key: object, url: str) -> None:
    """Check the values of a piece."""
    if not (type(start) is type(end) is int and 0 <= start <= end):
        raise ValueError(start, end)
    if FILE.fullmatch(str(name)) is None or not is_plain(key):
        raise PathEscapeError(url, key if FILE.fullmatch(str(name)) else name)
