"""`SentSegments`: the segments of a checkpoint in a bucket, read where their bytes are.

The bytes of a segment are in the file of this machine until they were sent, and for a while after
that. What another machine has sent, or was freed here, is read from the objects by ranges. So a
run needs no room for all its outputs, and a resume fetches only what it reads.
"""

import os
import re
import threading
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from dagster_dataops.checkpoints.journal.segments import Segments, segment_path
from dagster_dataops.checkpoints.journal.sent_pieces import PUBLISHED, Piece, SentObject, freed
from dagster_dataops.datasets.durable_files import COPY_BYTES, make_folder, storage, write_all
from dagster_dataops.errors import StorageError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.joined_object import PartList, name_in_list
from dagster_dataops.foundation.places.opening import open_readable, opened
from dagster_dataops.foundation.places.range_source import (
    RangeSource,
    Readable,
    read_blocks,
    read_range,
)
from dagster_dataops.foundation.places.result_store import ConflictError, ResultStore

KEPT_BYTES: Final = 256 << 20  # of segments on this machine that are in the bucket, too
FILE: Final = re.compile(r"segment-[0-9]{5,}\.jsonl|quarantine\.jsonl")  # of a checkpoint
LEAST_PART_BYTES: Final = 2 << 10  # on average, of a result that stays in parts
LEAST_OBJECT_BYTES: Final = 256 << 10
_MOST_PARTS: Final = 1 << 20  # they are in the memory of each reader
_CHUNK_BYTES: Final = 2 << 20  # of an object, read at once
_CHUNKS: Final = 16


class _SentFile:
    """Which bytes of a file are in which objects.

    Attributes:
        freed: Bytes before it are not on this machine.
        sent: The end of the bytes that were sent, without a gap.
    """

    def __init__(self) -> None:
        self.freed = self.sent = 0
        self._starts, self._ends = array("Q"), array("Q")
        self._keys: list[str] = []
        self._places = array("Q")  # where in the objects

    def add(self, start: int, end: int, key: str, place: int) -> None:
        """Add a piece; it replaces earlier pieces where they overlap: a stream was cut off."""
        row = bisect_right(self._starts, start)  # almost always the end
        if row and (before := self._ends[row - 1]) > start:
            if before > end:
                place_of_rest = self._places[row - 1] + end - self._starts[row - 1]
                self._insert(row, end, before, self._keys[row - 1], place_of_rest)
            self._ends[row - 1] = start
        while row < len(self._starts) and self._starts[row] < end:
            if self._ends[row] > end:
                self._places[row] += end - self._starts[row]
                self._starts[row] = end
                break
            for column in (self._starts, self._ends, self._keys, self._places):
                del column[row]
        self._insert(row, start, end, key, place)
        if start <= self.sent:
            self.sent = max(self.sent, end)

    def _insert(self, row: int, start: int, end: int, key: str, place: int) -> None:
        self._starts.insert(row, start)
        self._ends.insert(row, end)
        self._keys.insert(row, key)
        self._places.insert(row, place)

    def find(self, at: int) -> tuple[str, int, int] | None:
        """Return the key of the object with a byte, its place there, and how many follow it."""
        row = bisect_right(self._starts, at) - 1
        if row < 0 or at >= self._ends[row]:
            return None
        return self._keys[row], self._places[row] + at - self._starts[row], self._ends[row] - at

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Yield start and end of each piece, in order."""
        return zip(self._starts, self._ends, strict=True)

    @property
    def end(self) -> int:
        """The end of the last piece."""
        return self._ends[-1] if self._ends else 0


class SentSegments(Segments):
    """The segments of a checkpoint whose outputs are sent to a bucket.

    Args:
        folder: The checkpoint's folder in the working copy.
        store: The store.
        check_held: Raise a `LostError` if another run has taken the node over. It is called when an
            object is missing: the other run deletes them after it has published.

    Attributes:
        taken: The published result, if it is one of the files; see `take`.
    """

    def __init__(
        self, folder: Path, store: ResultStore, check_held: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(folder)
        self._store, self._check_held = store, check_held
        self._files: dict[str, _SentFile] = {}
        self._chunks: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._changing = threading.RLock()
        self._may_free = True
        self._texts: dict[str, Location] = {}  # files that are the text of a compressed result
        self.taken: SentObject | None = None

    def add(self, pieces: list[Piece], key: str, *, here: bool) -> None:
        """Note that an object holds pieces of files, one after the other.

        Args:
            pieces: The pieces.
            key: The key of the object.
            here: Whether this machine has them, too.
        """
        place = 0
        with self._changing:
            for name, start, end in pieces:
                file = self._files.setdefault(name, _SentFile())
                file.add(start, end, key, place)
                file.freed = file.freed if here else max(file.freed, end)
                place += end - start
        self._free_if_many()

    def take(self, piece: Piece, digest: str, pieces: Iterable[tuple[str, int, int]]) -> bool:
        """Use the published result as a file; its bytes stay in their objects.

        Args:
            piece: The whole file. It is on this machine, too, if it exists.
            digest: Of the result.
            pieces: Key, offset and length of each of its pieces in the store, in order.

        Returns:
            Whether all pieces are there; if not, the file is not used.
        """
        at, file = 0, _SentFile()
        for key, place, length in pieces:
            file.add(at, at + length, key, place)
            at += length
        if at != piece.end:
            return False
        file.freed = 0 if (self.folder / piece.name).exists() else at
        with self._changing:
            self._files[piece.name] = file
            self.taken = SentObject(PUBLISHED, [piece], digest)
        return True

    def take_text(self, piece: Piece, digest: str, location: Location) -> None:
        """Use the text of the published result, which is compressed, as a file.

        Args:
            piece: The whole file.
            digest: Of the text.
            location: Where the result is.
        """
        with self._changing:
            self._texts[piece.name] = location
            self.taken = SentObject(PUBLISHED, [piece], digest)

    def parts(self, places: Iterable[tuple[int, int, int]]) -> PartList | None:
        """Return where the outputs of spans are in the bucket.

        Args:
            places: Segment, offset and length of each output, in order.

        Returns:
            The parts; ``None`` if some were not sent, or if they are so small that they would be
            read slowly.
        """
        parts, numbers = PartList.empty(), dict[str, int]()
        size = 0
        for piece in self._found(places):
            if piece is None:
                return None
            key, place, length = piece
            _add_part(parts, numbers.setdefault(key, len(numbers)), place, length)
            size += length
        parts.names.extend(map(name_in_list, numbers))
        few = len(parts.objects) * LEAST_PART_BYTES <= size and len(parts.objects) <= _MOST_PARTS
        return parts if few and len(numbers) * LEAST_OBJECT_BYTES <= size else None

    @override
    def objects(self, places: Iterable[tuple[int, int, int]]) -> list[list[Any]]:
        pieces = []
        for piece in self._found(places):
            if piece is None:
                raise StorageError(str(self.folder), "find outputs", "they were not sent")
            pieces.append(list(piece))
        return pieces

    def _found(
        self, places: Iterable[tuple[int, int, int]]
    ) -> Iterator[tuple[str, int, int] | None]:
        """Yield key, offset and length of the pieces of outputs; ``None`` for one not sent."""
        for segment, start, length in places:
            file = self._files.get(segment_path(self.folder, segment).name) if length else None
            at, end = start, start + length
            while at < end:
                piece = file.find(at) if file else None
                if piece is None:
                    yield None
                    break
                key, place, rest = piece
                rest = min(rest, end - at)
                yield key, place, rest
                at += rest

    def sent_bytes(self) -> int:
        """Return how many bytes of files were sent."""
        return sum(file.end for file in self._files.values())

    def keep_whole(self) -> None:
        """Do not free files from now on."""
        self._may_free = False

    def _free_if_many(self) -> None:
        """Free the bytes that the bucket has, once they are many."""
        with self._changing:
            many = sum(max(0, file.sent - file.freed) for file in self._files.values()) > KEPT_BYTES
            for name, file in self._files.items() if self._may_free and many else ():
                if file.sent > file.freed and freed(self.folder / name, file.freed, file.sent):
                    file.freed = file.sent

    @override
    def open(self, number: int) -> Readable | None:
        name = segment_path(self.folder, number).name
        if name in self._texts:
            return open_readable(self._texts[name])
        if name not in self._files:
            return super().open(number)
        return _SentSegment(self, name)

    @override
    def file(self, number: int) -> Path | None:
        path = segment_path(self.folder, number)
        with self._changing:
            sent = self._files.get(path.name)
            if path.name in self._texts or (sent is not None and sent.freed):
                return None
            self.keep_whole()  # the caller may link it
        return super().file(number)

    @override
    def names(self) -> set[str]:
        return super().names() | self._files.keys() | self._texts.keys()

    @override
    def fetch(self) -> None:
        with self._changing:
            self.keep_whole()
            for name, file in self._files.items():
                self._fetch(name, file)
            for name, location in self._texts.items():
                self._fetch_text(self.folder / name, location)
            self._texts.clear()

    def _fetch(self, name: str, file: _SentFile) -> None:
        """Write the freed bytes of a file; what the bucket lacks stays a gap."""
        path = self.folder / name
        make_folder(self.folder)
        with storage(path, "write the file"):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                for at, end in file.pieces():
                    while at < min(end, file.freed):
                        data = self._of_object(file, at, file.freed - at)
                        if not data:
                            break
                        os.lseek(descriptor, at, os.SEEK_SET)
                        write_all(descriptor, data)
                        at += len(data)  # noqa: PLW2901
                file.freed = 0
            finally:
                os.close(descriptor)

    def _fetch_text(self, path: Path, location: Location) -> None:
        make_folder(self.folder)
        with storage(path, "write the file"), opened(location) as text, path.open("wb") as file:
            for block in read_blocks(text, COPY_BYTES):
                file.write(block)

    def size(self, name: str) -> int:
        """Return the size of a file, as far as it is known."""
        sent = self._files[name].end
        with suppress(OSError):
            return max(sent, (self.folder / name).stat().st_size)
        return sent

    def read(self, name: str, start: int, length: int) -> bytes:
        """Return bytes of a file; fewer if they are missing.

        Raises:
            LostError: They are missing because another run has taken the node over.
            StorageError: The store cannot be reached.
        """
        parts = []
        while length > 0:
            with self._changing:
                file = self._files[name]
                here = start >= file.freed
                part = self._of_file(name, start, length) if here else b""
            if not here:
                part = self._of_object(file, start, min(length, file.freed - start))
            if not part:
                break
            parts.append(part)
            start, length = start + len(part), length - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _of_file(self, name: str, start: int, length: int) -> bytes:
        try:
            descriptor = os.open(self.folder / name, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        try:
            return read_range(descriptor, start, length)
        finally:
            os.close(descriptor)

    def _of_object(self, file: _SentFile, start: int, length: int) -> bytes:
        """Return bytes from ``start``, at most ``length``; none if the bucket lacks the first."""
        with self._changing:
            piece = file.find(start)
        if piece is None:
            return b""
        key, place, rest = piece
        number, within = divmod(place, _CHUNK_BYTES)
        return self._chunk(key, number)[within : within + min(length, rest)]

    def _chunk(self, key: str, number: int) -> bytes:
        known = self._chunks.get((key, number))
        if known is not None:
            return known
        try:
            chunk = self._store.read_range(key, number * _CHUNK_BYTES, _CHUNK_BYTES, None)
        except ConflictError:  # it was deleted
            self._check_held()
            chunk = b""
        with self._changing:
            self._chunks[key, number] = chunk
            if len(self._chunks) > _CHUNKS:
                self._chunks.popitem(last=False)
        return chunk


def _add_part(parts: PartList, number: int, at: int, length: int) -> None:
    """Add a part; one that follows the last one in its object makes that longer."""
    last = parts.objects[-1] if parts.objects else None
    if last == number and parts.offsets[-1] + parts.lengths[-1] == at:
        parts.lengths[-1] += length
        return
    parts.objects.append(number)
    parts.offsets.append(at)
    parts.lengths.append(length)


class _SentSegment(RangeSource):
    """An open segment."""

    def __init__(self, segments: SentSegments, name: str) -> None:
        self._segments, self._name = segments, name
        self.name = str(segments.folder / name)
        self.size = segments.size(name)

    @override
    def read(self, start: int, length: int) -> bytes:
        return self._segments.read(self._name, start, length)

    @override
    def state(self) -> FileState:
        return FileState(0, self.size, 0, 0)
