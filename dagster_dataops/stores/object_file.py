"""ObjectFile: the content of an object, read by ranges by the process that needs it."""

from pathlib import Path
from threading import Lock
from typing import Final

import xxhash

from dagster_dataops.configuration import input_object, shown_place
from dagster_dataops.errors import InputError, StorageError

CHUNK_BYTES: Final = 4 << 20
_LEAST_BYTES: Final = 64 << 10  # of a request; the lines of the next range are often nearby
_KEPT: Final = 2  # chunks: a line may lie in two


class ObjectFile:
    """An input on an object store, in the version that it had when it was opened.

    Nothing is copied to a disk. At most two chunks and one small block are in memory. Temporary
    errors are retried by the client of the store.

    Args:
        path: The path that stands for the object; see `root_setting`.

    Attributes:
        path: The path.
        store: The store.
        key: The key of the object in it.
        size: The size in bytes.
        version: The version of the object; its tag differs for another content.

    Raises:
        InputError: There is no such object, or it cannot be read.
        StoreRefusedError: The store cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        from dagster_dataops.stores.open_stores import reading  # only if there is an object

        found = input_object(path)
        if found is None:
            raise InputError(str(path), "is no path of an object")
        self.path = path
        self.store, self.key = reading(found[0]), found[1]
        try:
            status = self.store.status(self.key)
        except StorageError as error:
            raise InputError(shown_place(path), f"cannot be read: {error.reason}") from error
        if status is None:
            raise InputError(shown_place(path), "there is no such object")
        self.size = status.size
        self.version = status.version
        self._lock = Lock()
        self._expected = (0, 0)
        self._chunks: dict[int, bytes] = {}  # of the expected range, by number
        self._block = (0, b"")  # outside it: a position, and the bytes there

    @property
    def fingerprint(self) -> str:
        """The identity of the content: the entity tag and the size."""
        tag = self.version.tag.strip('"')
        return f"etag:{tag}:{self.size}"

    @property
    def mark(self) -> int:
        """A number of 63 bits made of the entity tag."""
        return xxhash.xxh3_64_intdigest(self.version.tag.encode()) >> 1

    def expect(self, start: int, end: int) -> None:
        """Announce that [start, end) will be read in order: it is then requested in chunks."""
        with self._lock:
            first, last = self._expected
            if end - start > _LEAST_BYTES and not first <= start < end <= last:
                self._expected = (start, end)
                self._chunks.clear()

    def read(self, start: int, length: int) -> bytes:
        """Return ``length`` bytes from ``start``; fewer only at the end.

        Raises:
            InputError: The object was replaced or deleted, or the store cannot be reached.
        """
        end = min(start + length, self.size)
        if end <= start:
            return b""
        with self._lock:
            first, last = self._expected
            if first <= start and end <= last and length <= CHUNK_BYTES:
                return self._from_chunks(start - first, end - first)
            return self._from_block(start, end)

    def _from_chunks(self, start: int, end: int) -> bytes:
        """Return bytes of the expected range, counted from its start."""
        numbers = range(start // CHUNK_BYTES, (end - 1) // CHUNK_BYTES + 1)
        chunks = [self._chunk(number) for number in numbers]
        joined = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        skipped = start - numbers[0] * CHUNK_BYTES
        return joined[skipped : skipped + end - start]

    def _chunk(self, number: int) -> bytes:
        if number not in self._chunks:
            while len(self._chunks) >= _KEPT:
                del self._chunks[min(self._chunks)]
            first, last = self._expected
            start = first + number * CHUNK_BYTES
            self._chunks[number] = self._request(start, min(start + CHUNK_BYTES, last))
        return self._chunks[number]

    def _from_block(self, start: int, end: int) -> bytes:
        at, block = self._block
        if not at <= start <= end <= at + len(block):
            at = start
            block = self._request(start, min(max(end, start + _LEAST_BYTES), self.size))
            if len(block) > CHUNK_BYTES:  # a long line is not kept
                return block
            self._block = at, block
        return block[start - at : end - at]

    def _request(self, start: int, end: int) -> bytes:
        from dagster_dataops.stores.result_store import ConflictError

        try:
            return self.store.read_range(self.key, start, end - start, self.version)
        except ConflictError:
            reason = "was replaced or deleted in the store while it was read; run again"
            raise InputError(shown_place(self.path), reason) from None
        except StorageError as error:
            raise InputError(shown_place(self.path), f"cannot be read: {error.reason}") from error
