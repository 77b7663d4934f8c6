"""ObjectFile: the content of an object, read by ranges by the process that needs it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Final

import xxhash

from dagster_dataops.errors import InputError, StorageError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import BucketFile
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.range_source import RangeSource

if TYPE_CHECKING:
    from dagster_dataops.foundation.places.result_store import ReadableStore

_KEPT_BYTES: Final = 4 << 20  # before the bytes that were read last
_FIRST_BYTES: Final = 128 << 10  # on opening
_LEAST_BYTES: Final = 64 << 10  # of a request; the lines of the next range are often nearby


def object_exists(file: BucketFile) -> bool:
    """Whether the store has an object.

    Raises:
        InputError: The store cannot be read.
        StoreRefusedError: The store cannot be opened.
    """
    try:
        return _store_of(file).status(file.key) is not None
    except StorageError as error:
        raise InputError(str(file), f"cannot be read: {error.reason}") from error


def _store_of(file: BucketFile) -> "ReadableStore":
    # Only if there is an object.
    from dagster_dataops.foundation.places.joined_object import readable
    from dagster_dataops.foundation.places.open_stores import reading

    return readable(reading(file.bucket), file.key)


class ObjectFile(RangeSource):
    """An input on an object store, in the version that it had when it was opened.

    It is opened by one request, which returns its first block too. Later requests carry its
    version, so that a store refuses them once it was replaced. Nothing is copied to a disk. A few
    megabytes are in memory. Temporary errors are retried by the client of the store.

    Attributes:
        store: The store.
        key: The key of the object in it.
        size: The size in bytes.
        name: The URL.
        fingerprint: The identity of the content: the entity tag and the size.
        version: The version of the object; its tag differs for another content.

    Raises:
        InputError: There is no such object, or it cannot be read.
        StoreRefusedError: The store cannot be opened.
    """

    def __init__(self, file: BucketFile) -> None:
        self.name = str(file)
        self.store, self.key = _store_of(file), file.key
        try:
            opened = self.store.read_start(self.key, _FIRST_BYTES)
        except StorageError as error:
            raise InputError(self.name, f"cannot be read: {error.reason}") from error
        if opened is None:
            raise InputError(self.name, "there is no such object")
        (self.size, self.version), block = opened
        if not (self.version.tag or self.version.number):
            reason = (
                "its store gives no entity tag and no version, so that a replaced object cannot be "
                "told from this one; copy it to a file first"
            )
            raise InputError(self.name, reason)
        tag = self._tag.strip('"')
        self.fingerprint = f"etag:{tag}:{self.size}"
        self._lock = Lock()
        self._window = 0, bytearray()  # of the expected range: a position, and the bytes there
        self._last = 0  # its end
        self._answer: Iterator[bytes] | None = None  # the bytes behind the window
        self._block = 0, block  # outside it; a position, and the bytes there

    @override
    def state(self) -> FileState:
        mark = xxhash.xxh3_64_intdigest(self._tag.encode()) >> 1  # 63 bits
        return FileState(0, self.size, mark, 0)

    @property
    def _tag(self) -> str:
        """The entity tag; of a store without tags the version."""
        return self.version.tag or self.version.number

    @override
    def expect(self, start: int, end: int) -> None:
        """Request [start, end), which will be read in order; wait for the first bytes.

        Raises:
            InputError: As from `read`.
        """
        if end - start <= _LEAST_BYTES:
            self.read(start, end - start)
            return
        with self._lock:
            at, window = self._window
            begun = at <= start < at + len(window)
            if begun and end <= self._last:
                return
            self._last, self._answer = end, None
            if not begun:
                self._window = start, bytearray()
                self._from_window(start, start + 1)

    @override
    def read(self, start: int, length: int) -> bytes:
        """Return ``length`` bytes from ``start``; fewer only at the end.

        Raises:
            InputError: The object was replaced or deleted, or the store cannot be reached.
        """
        end = min(start + length, self.size)
        if end <= start:
            return b""
        with self._lock:
            at, window = self._window
            ahead = start - at - len(window)
            if at <= start and ahead <= _KEPT_BYTES and end <= self._last:
                return self._from_window(start, end)
            return self._from_block(start, end)

    def _from_window(self, start: int, end: int) -> bytes:
        """Return bytes of the expected range; those not far before them are kept."""
        at, window = self._window
        while at + len(window) < end:
            passed = min(start - at, max(0, len(window) - _KEPT_BYTES))
            del window[:passed]
            at += passed
            self._window = at, window
            window += self._next(at + len(window))
        return bytes(memoryview(window)[start - at : end - at])

    def _next(self, position: int) -> bytes:
        """Return more of the expected range: of the answer under way if it does not break off."""
        if self._answer is None:
            self._answer = self.store.read_on(self.key, position, self._last, self.version)
        with suppress(StorageError), self._unchanged():
            if piece := next(self._answer, b""):
                return piece
        self._answer = None
        return self._request(position, min(position + _LEAST_BYTES, self._last))

    def _from_block(self, start: int, end: int) -> bytes:
        at, block = self._block
        if not at <= start <= end <= at + len(block):
            at = start
            block = self._request(start, min(max(end, start + _LEAST_BYTES), self.size))
            if len(block) > _KEPT_BYTES:  # a long line is not kept
                return block
            self._block = at, block
        return block[start - at : end - at]

    def _request(self, start: int, end: int) -> bytes:
        with self._unchanged():
            try:
                return self.store.read_range(self.key, start, end - start, self.version)
            except StorageError as error:
                reason = f"cannot be read: {error.reason}"
                raise InputError(self.name, reason) from error

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        from dagster_dataops.foundation.places.result_store import ConflictError

        try:
            yield
        except ConflictError:
            reason = "was replaced or deleted in the store while it was read; run again"
            raise InputError(self.name, reason) from None
