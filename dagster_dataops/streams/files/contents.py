"""Read the bytes of local, remote and compressed files from any position."""

import io
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, Protocol, Self

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.range_source import Readable, close_readable, read_range
from dagster_dataops.streams.files.descriptors import naming_text, open_descriptor, open_frames

FRAMES: Final = "frames"  # the compression of results; see `foundation.frames`
_BYTES_AT_ONCE: Final = 1 << 20


class ByteSource(Protocol):
    """A byte source that is read from its start."""

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes; empty at the end. Errors follow the bytes before them."""
        ...

    def close(self) -> None:
        """Close the source. May be called twice."""
        ...


class Content(ABC):
    """An open file.

    Attributes:
        failure: The error that made a read return too few bytes; ``None`` at the end of the file.
    """

    failure: StreamSourceError | None = None

    @abstractmethod
    def read_at(self, size: int, offset: int) -> bytes:
        """Return ``size`` bytes from ``offset``; fewer only at the end or before `failure`."""

    def read_all(self, limit: int | None = None) -> bytes:
        """Return the bytes of the file from its start, at most ``limit``; all if it is ``None``.

        Raises:
            StreamSourceError: The file cannot be read.
        """
        parts: list[bytes] = []
        size, most = 0, sys.maxsize if limit is None else limit
        while size < most and (part := self.read_at(min(_BYTES_AT_ONCE, most - size), size)):
            parts.append(part)
            size += len(part)
        if self.failure is not None:
            raise self.failure
        return b"".join(parts)

    @abstractmethod
    def close(self) -> None:
        """Close the file. May be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PlainContent(Content):
    """An uncompressed local file.

    Raises:
        StreamSourceError: The file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = open_descriptor(path)

    @override
    def read_at(self, size: int, offset: int) -> bytes:
        try:
            return os.pread(self._descriptor, size, offset)
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            raise StreamSourceError(self._path, reason) from error

    @override
    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class FramedContent(Content):
    """A compressed result, whose text is read from any position.

    Raises:
        StreamSourceError: The file cannot be opened, or is damaged.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._source: Readable | None = open_frames(path)

    @override
    def read_at(self, size: int, offset: int) -> bytes:
        if self._source is None:
            raise ValueError(self._path)  # it was closed
        with naming_text(self._path):
            return read_range(self._source, offset, size)

    @override
    def close(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            close_readable(source)


class WindowedContent(Content):
    """Random access to a sequential source; the bytes of the last read are buffered.

    Args:
        open_source: Opens the source at its start. A source with a ``seek`` method is positioned
            with it. For other sources the bytes before the position are read and dropped.
    """

    def __init__(self, open_source: Callable[[], ByteSource]) -> None:
        self._open = open_source
        self._source: ByteSource | None = None
        self._window = bytearray()
        self._start = 0  # offset of the window in the file

    @override
    def read_at(self, size: int, offset: int) -> bytes:
        try:
            self._move_window(offset)
            self._fill(size)
        except StreamSourceError as error:
            self.failure = error
            if self._start != offset:  # it failed before the offset
                return b""
        with memoryview(self._window) as window:  # copy a possibly very long line only once
            return bytes(window[:size])

    def _move_window(self, offset: int) -> None:
        """Move the start of the window to ``offset``."""
        if offset < self._start:
            self.close()
        if offset <= self._start + len(self._window):
            del self._window[: offset - self._start]
            self._start = offset
            return
        seek = getattr(self._opened(), "seek", None)
        if seek is not None:
            seek(offset)
            self._window.clear()
            self._start = offset
            return
        while (missing := offset - self._start) > 0:
            self._fill(min(missing, _BYTES_AT_ONCE))
            if not self._window:
                return  # the source ends before the offset
            passed = min(missing, len(self._window))
            del self._window[:passed]
            self._start += passed

    def _fill(self, size: int) -> None:
        while len(self._window) < size:
            part = self._opened().read(size - len(self._window))
            if not part:
                return
            self._window += part

    def _opened(self) -> ByteSource:
        if self._source is None:
            self._source = self._open()
        return self._source

    @override
    def close(self) -> None:
        self.failure = None
        self._window.clear()
        self._start = 0
        if self._source is not None:
            self._source.close()
            self._source = None


class ContentFile(io.RawIOBase):
    """A Python file over a content.

    Args:
        content: The content, which the caller closes.
    """

    def __init__(self, content: Content) -> None:
        super().__init__()
        self._content = content
        self._at = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def tell(self) -> int:
        return self._at

    @override
    def readinto(self, buffer: Any, /) -> int:
        part = self._content.read_at(len(buffer), self._at)
        if not part and self._content.failure is not None:
            raise self._content.failure
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)
