"""ShippedJournal: a journal in a working copy, whose entries and outputs are sent to its store.

Entries are collected, and sent by `sync`: first the outputs that they refer to as one object, then
an entry of the `ObjectJournal` with the frames. So a flush takes two requests, however many
workers there are. More outputs than fit in memory at once are sent in several steps.
"""

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from typing_extensions import override

from dagster_dataops.checkpoints.journal.journal_writer import JournalWriter
from dagster_dataops.checkpoints.journal.positions import Position
from dagster_dataops.checkpoints.journal.segments import segment_path
from dagster_dataops.checkpoints.journal.span import ReopenedEntry, SpansEntry
from dagster_dataops.checkpoints.places.object_journal import ObjectEntry, ObjectJournal
from dagster_dataops.datasets.durable_files import make_folder, storage, write_all
from dagster_dataops.errors import PathEscapeError, StorageError
from dagster_dataops.foundation.places.confined_names import is_plain
from dagster_dataops.foundation.places.range_source import read_range
from dagster_dataops.foundation.places.result_store import ResultStore

_STEP_BYTES: Final = 32 << 20  # outputs in one object
_STREAM_SEGMENT: Final = 1
_QUARANTINE: Final = "quarantine.jsonl"
_FILE: Final = re.compile(r"segment-[0-9]{5,}\.jsonl|quarantine\.jsonl")  # of a checkpoint


class Piece(NamedTuple):
    """Bytes of a file of a checkpoint."""

    name: str
    start: int
    end: int


class ShippedJournal(JournalWriter):
    """Appends entries to a journal, and sends them to a store.

    Args:
        path: The file in the working copy.
        objects: The journal of the node on the store.
        store: The store.
        known: Whether the store has the entries that the file has already.
    """

    on_disk = False
    sync_share = 1
    least_seconds = 0.5  # two requests each

    def __init__(
        self, path: Path, objects: ObjectJournal, store: ResultStore, *, known: bool
    ) -> None:
        self._objects, self._store = objects, store
        self._number = int(path.parent.name)
        self._pending = threading.Lock()
        self._frames = bytearray()
        self._pieces: list[Piece] = []
        self._sent = {segment_path(path.parent, _STREAM_SEGMENT).name: 0, _QUARANTINE: 0}
        if not known and path.exists():
            self._frames += path.read_bytes()
            files = sorted(path.parent.glob("segment-*"))
            self._pieces = [Piece(file.name, 0, file.stat().st_size) for file in files]
        super().__init__(path)

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
        self._sent = dict(zip(self._sent, (size, quarantined), strict=True))

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

    def _add(self, piece: Piece) -> None:
        if piece.end <= piece.start:
            return
        with self._pending:
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
        try:
            *before, last = _steps(pieces)
            for step in before:
                self._send(step, b"")
            if last or frames:
                self._send(last, bytes(frames))
        except StorageError:
            with self._pending:
                self._frames[:0] = frames
                self._pieces[:0] = pieces
            raise

    def _send(self, pieces: list[Piece], frames: bytes) -> None:
        head: dict[str, object] = {"kind": "work", "checkpoint": self._number}
        if pieces:
            key = self._objects.next_data
            self._store.put(key, b"".join(_outputs(self.path.parent, pieces)))
            head |= {"data": key.rpartition("/")[2], "pieces": [list(piece) for piece in pieces]}
        self._objects.append(head, frames)


def _steps(pieces: list[Piece]) -> list[list[Piece]]:
    """Return pieces in groups that fit in memory; at least one, perhaps empty, group."""
    steps: list[list[Piece]] = [[]]
    size = 0
    for name, start, end in pieces:
        at = start
        while at < end:
            cut = min(end, at + _STEP_BYTES - size)
            steps[-1].append(Piece(name, at, cut))
            size += cut - at
            at = cut
            if size == _STEP_BYTES:
                steps.append([])
                size = 0
    return steps


def _outputs(folder: Path, pieces: list[Piece]) -> Iterator[bytes]:
    for name, start, end in pieces:
        path = folder / name
        with storage(path, "read back"), path.open("rb") as file:
            data = read_range(file.fileno(), start, end - start)
        if len(data) < end - start:
            raise StorageError(str(path), "read back", "it is shorter than what was written to it")
        yield data


def restore(store: ResultStore, key: str, entries: Iterable[ObjectEntry], folder: Path) -> bool:
    """Make the checkpoints of a node from the entries of its journal.

    Missing outputs are left out; the spans that refer to them fail their checksums. Others may
    write to the bucket, so only the files of a checkpoint are written.

    Args:
        store: The store.
        key: Of the node's folder.
        entries: Of its journal, in order.
        folder: The folder of the checkpoints in the working copy.

    Returns:
        Whether nothing was missing.

    Raises:
        PathEscapeError: An entry names another file than those of a checkpoint.
        StorageError: An entry is damaged.
    """
    whole = True
    for entry in entries:
        number = entry.head.get("checkpoint")
        if type(number) is not int or number < 0:
            whole = whole and bool(entry.head)
            continue
        place = folder / str(number)
        make_folder(place)
        if "data" in entry.head:
            url = f"{store.url}/{key}/.journal/{entry.number:08d}"
            name, pieces = _named(entry.head, url)
            found = store.read(f"{key}/.journal/data/{name}")
            whole = whole and found is not None
            if found is not None:
                _put_back(place, found[0], pieces)
        with storage(place, "write the journal"), (place / "journal").open("ab") as file:
            file.write(entry.frames)
    return whole


def _named(head: Mapping[str, Any], url: str) -> tuple[str, list[Piece]]:
    """Return the name of the object with the outputs of an entry, and its pieces.

    Raises:
        PathEscapeError: It names another file than those of a checkpoint.
        StorageError: It is damaged.
    """
    name = head["data"]
    if not is_plain(name):
        raise PathEscapeError(url, name)
    try:
        pieces = [Piece(*piece) for piece in head.get("pieces") or ()]
        are_bytes = all(0 <= one.start <= one.end for one in pieces)
    except TypeError:
        pieces, are_bytes = [], False
    if not are_bytes:
        raise StorageError(url, "restore the checkpoint", "the entry of the journal is damaged")
    for piece in pieces:
        if _FILE.fullmatch(str(piece.name)) is None:
            raise PathEscapeError(url, piece.name)
    return name, pieces


def _put_back(folder: Path, data: bytes, pieces: list[Piece]) -> None:
    rest = memoryview(data)
    for name, start, end in pieces:
        path = folder / name
        with storage(path, "write the file"):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                os.lseek(descriptor, start, os.SEEK_SET)
                write_all(descriptor, rest[: end - start])
            finally:
                os.close(descriptor)
        rest = rest[end - start :]
