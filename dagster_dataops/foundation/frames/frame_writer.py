"""`FrameWriter`: compress a text to frames with an index; see `frame_index`."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from dagster_dataops.errors import MissingExtraError
from dagster_dataops.foundation.concurrency.cores import usable_cores
from dagster_dataops.foundation.frames.frame_index import FRAME_BYTES, packed_entry, packed_index

try:
    import zstandard
except ImportError:
    raise MissingExtraError("writing a compressed result", "zstd") from None

_LEVEL: Final = 1  # 3 takes twice the time, for a tenth less
_MOST_THREADS: Final = 8


class FrameWriter:
    """Compresses a text, in threads on all cores: the compressor leaves the interpreter free.

    A text up to one frame needs no thread. A frame ends with a line, unless the line is longer. The
    frames of a text are the same whatever the sizes of its pieces and the number of cores.

    Args:
        put: Takes the bytes of the file, in order; called in the thread of the caller.
    """

    def __init__(self, put: Callable[[bytes], object]) -> None:
        self._put = put
        self._entries = bytearray()
        self._size = 0
        self._lines = True  # whether all frames so far begin with a line
        self._pieces: list[bytes | memoryview] = []  # the text that is in no frame yet
        self._pending = 0  # its size
        self._threads: ThreadPoolExecutor | None = None
        self._begun: deque[tuple[int, Future[bytes]]] = deque()
        self._compressors: list[Any] = []  # those that no thread uses

    def write(self, text: bytes | bytearray) -> None:
        """Append a piece of the text.

        Raises:
            OSError: As from ``put``.
        """
        self._pieces.append(text if isinstance(text, bytes) else bytes(text))
        self._pending += len(text)
        if self._pending <= FRAME_BYTES:
            return
        joined = b"".join(self._pieces)
        view = memoryview(joined)  # slices of it copy nothing
        start = 0
        while len(joined) - start > FRAME_BYTES:
            most = start + FRAME_BYTES
            end = joined.rfind(b"\n", start, most) + 1
            if not end:  # a long line
                end, self._lines = most, False
            self._begin(view[start:end])
            start = end
        self._pieces, self._pending = [view[start:]], len(joined) - start

    def finish(self, digest: bytes) -> None:
        """Put the rest and the index.

        Args:
            digest: The digest of the text, 128 bits.

        Raises:
            OSError: As from ``put``.
        """
        while self._begun:
            self._put_next()
        self.close()
        if self._pending:
            self._put_frame(self._pending, self._compressed(b"".join(self._pieces)))
        self._put(packed_index(bytes(self._entries), self._size, digest, lines=self._lines))

    def close(self) -> None:
        """End the threads; safe to call twice."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(cancel_futures=True)

    def _begin(self, text: memoryview) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_threads(), "dataops-frames")
        self._begun.append((len(text), self._threads.submit(self._compressed, text)))
        if len(self._begun) > 2 * _threads():
            self._put_next()

    def _put_next(self) -> None:
        size, begun = self._begun.popleft()
        self._put_frame(size, begun.result())

    def _put_frame(self, size: int, frame: bytes) -> None:
        self._entries += packed_entry(frame, size)
        self._size += size
        self._put(frame)

    def _compressed(self, text: bytes | memoryview) -> bytes:
        try:
            compressor = self._compressors.pop()
        except IndexError:
            compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        frame: bytes = compressor.compress(text)
        self._compressors.append(compressor)
        return frame


def _threads() -> int:
    return min(_MOST_THREADS, usable_cores())
