"""`FramedFile`: a text in compressed frames, which is read like a plain file of the text."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from signal import SIG_BLOCK, SIGINT, SIGTERM, pthread_sigmask
from threading import Lock, Thread
from typing import Any, Final

from dagster_dataops.errors import InputError, MissingExtraError
from dagster_dataops.foundation.concurrency.cores import usable_cores
from dagster_dataops.foundation.frames.frame_index import (
    FRAME_START,
    LEAST_BYTES,
    TAIL_BYTES,
    FrameIndex,
    IndexDamage,
    has_footer,
    index_bytes,
    is_ours,
    parsed_index,
)
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.range_source import (
    RangeSource,
    Readable,
    close_readable,
    expect,
    read_range,
    size_of,
    state_of,
)

_KEPT_FRAMES: Final = 4  # texts in memory, 1 MiB each
_UNUSED_BIT: Final = 0x10  # of the header of a frame, which decompressors ignore
_REPAIR: Final = "run the step that writes it again, or fetch it again"


def text_of(source: Readable, name: str) -> Readable:
    """Return the text of an open file with frames; any other file as it is.

    Args:
        source: The open file, whose name ends like that of a compressed file of lines.
        name: Path or URL of the file.

    Raises:
        InputError: Its index is damaged, or that of another file.
        MissingExtraError: It has frames, and the package to decompress them is not installed.
    """
    try:
        size = size_of(source)
        tail = read_range(source, max(0, size - TAIL_BYTES), TAIL_BYTES)
        if not has_footer(tail):
            return source
        index = _index_of(source, size, tail)
        return source if index is None else FramedFile(source, name, index)
    except IndexDamage as error:
        close_readable(source)
        raise InputError(name, f"{error}; {_REPAIR}") from None
    except BaseException:
        close_readable(source)
        raise


def _index_of(source: Readable, size: int, tail: bytes) -> FrameIndex | None:
    """Return the index of a file; ``None`` if another program wrote it."""
    length = index_bytes(tail)
    if not 0 < length <= size:
        return None
    if length > len(tail):
        tail = read_range(source, size - length, length)
    data = tail[-length:]
    return parsed_index(data, size) if is_ours(data) else None


def check_frames(source: Readable, name: str) -> None:
    """Check that an open file, which has the name of a compressed result, has frames.

    Raises:
        InputError: It has none.
    """
    if not isinstance(source, FramedFile):
        reason = (
            "has no index of frames at its end: it was cut off, or another program wrote it. "
            f"{_REPAIR.capitalize()}; read_jsonl(path) reads files that other programs compressed"
        )
        raise InputError(name, reason)


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("reading a compressed result", "zstd") from None
    return zstandard


class FramedFile(RangeSource):
    """A text in compressed frames. Positions are those of the text.

    Each frame that is read is compared with the index and with its checksum. A few texts of frames
    are in memory. It may be used by several threads.

    If a caller announces by `expect` that it reads up to the end, a thread decompresses the next
    frame of a file of this machine while the caller uses the one before. The thread ends with its
    frame. Ranges before the end are read by several workers, which leave no core idle.

    Args:
        source: The open file; closed with this one.
        name: Path or URL of the file, for errors.
        index: Its index.

    Attributes:
        size: The size of the text in bytes.
        digest: The digest of the text that the index tells; the text was not compared with it.
    """

    def __init__(self, source: Readable, name: str, index: FrameIndex) -> None:
        self.name, self.size, self.digest = name, index.starts[-1], index.digest
        if not isinstance(source, int) and source.fingerprint is not None:
            self.fingerprint = index.digest  # of an object, which is not read to be identified
        self._source, self._index = source, index
        self._texts: OrderedDict[int, bytes] = OrderedDict()
        self._lock = Lock()
        self._zstandard = _zstandard()
        self._decompressor = self._zstandard.ZstdDecompressor()  # by one thread at a time
        self._to_the_end = False  # whether a caller announced that it reads up to the end
        self._ahead: _FrameAhead | None = None

    @override
    def read(self, start: int, length: int) -> bytes:
        end = min(start + length, self.size)
        if end <= start:
            return b""
        starts = self._index.starts
        pieces = []
        number = bisect_right(starts, start) - 1
        while start < end:
            text, at = self._text(number), starts[number]
            upto = min(end, starts[number + 1])
            whole = start == at and upto == starts[number + 1]
            pieces.append(text if whole else text[start - at : upto - at])
            start, number = upto, number + 1
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @override
    def expect(self, start: int, end: int) -> None:
        end = min(end, self.size)
        self._to_the_end = end == self.size and usable_cores() > 1
        if not isinstance(self._source, int) and start < end:
            places, starts = self._index.places, self._index.starts
            last = bisect_right(starts, end - 1)
            expect(self._source, places[bisect_right(starts, start) - 1], places[last])

    @override
    def line_near(self, position: int) -> int | None:
        starts = self._index.starts
        if not self._index.lines:
            return None
        number = bisect_right(starts, position)
        around = starts[max(0, number - 1) : number + 1]
        return min(around, key=lambda start: abs(start - position))

    @override
    def state(self) -> FileState:
        return state_of(self._source)

    @override
    def close(self) -> None:
        """Close the file. The texts in memory can still be read."""
        with self._lock:
            self._to_the_end = False
            if self._ahead is not None:
                self._ahead.join()
        close_readable(self._source)

    def _text(self, number: int) -> bytes:
        with self._lock:
            text = self._texts.get(number)
            if text is None:
                text = self._texts[number] = self._next_text(number)
                if len(self._texts) > _KEPT_FRAMES:
                    self._texts.popitem(last=False)
            return text

    def _next_text(self, number: int) -> bytes:
        """Return the text of a frame that is not in memory; begin with the one after it."""
        ahead, self._ahead = self._ahead, None
        text = ahead.text_of(number) if ahead is not None else None
        if text is None:
            text = self._text_in(self._frame(number), number)
        follows = number - 1 in self._texts and number + 1 < self._index.frames
        if self._to_the_end and follows and isinstance(self._source, int):
            with suppress(InputError, OSError, RuntimeError):  # found when it is asked for
                frame = self._frame(number + 1)
                self._ahead = _FrameAhead(number + 1, partial(self._text_in, frame, number + 1))
        return text

    def _frame(self, number: int) -> bytes:
        """Return a frame as it is stored."""
        index = self._index
        start, end = index.places[number], index.places[number + 1]
        frame = read_range(self._source, start, end - start)
        checksum = index.checksums[number].to_bytes(4, "little")
        if len(frame) < end - start or len(frame) < LEAST_BYTES:
            raise self._damaged(number, "it is cut off")
        if not frame.startswith(FRAME_START) or frame[4] & _UNUSED_BIT:
            raise self._damaged(number, "no frame begins there")
        if frame[-4:] != checksum:
            raise self._damaged(number, "its checksum is not that of the index")
        return frame

    def _text_in(self, frame: bytes, number: int) -> bytes:
        """Return the text of a frame."""
        index = self._index
        size = index.starts[number + 1] - index.starts[number]
        try:
            if self._zstandard.frame_content_size(frame) != size:
                raise self._damaged(number, "its size is not that of the index")
            text: bytes = self._decompressor.decompress(frame, allow_extra_data=False)
        except self._zstandard.ZstdError as error:
            raise self._damaged(number, str(error)) from error
        if len(text) != size:
            raise self._damaged(number, "its text has another size than the index tells")
        return text

    def _damaged(self, number: int, reason: str) -> InputError:
        places = self._index.places
        where = f"frame {number + 1:,} of {self._index.frames:,}"
        span = f"bytes {places[number]:,} to {places[number + 1]:,}"
        return InputError(self.name, f"{where} ({span}) is damaged: {reason}; {_REPAIR}")


class _FrameAhead(Thread):
    """Decompresses one frame.

    It only decompresses, which leaves the interpreter free: a thread that returns to Python before
    its end would wait until the caller asks for the text. A copy of the process that is forked
    meanwhile has no such thread, and waits for none.
    """

    def __init__(self, number: int, decompress: Callable[[], bytes]) -> None:
        super().__init__(name="dataops-frame-ahead", daemon=True)
        self._number, self._decompress = number, decompress
        self._text: bytes | None = None
        self.start()

    @override
    def run(self) -> None:
        pthread_sigmask(SIG_BLOCK, (SIGINT, SIGTERM))  # the main thread handles them
        with suppress(Exception):  # the caller finds it, too
            self._text = self._decompress()

    def text_of(self, number: int) -> bytes | None:
        """Return the text of a frame; ``None`` if this is another one, or it cannot be read."""
        self.join()
        return self._text if number == self._number else None
