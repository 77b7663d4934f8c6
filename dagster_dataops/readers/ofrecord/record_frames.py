"""Cut files of OFRecords into the bytes of their records: 8 bytes of length, then a payload."""

from collections.abc import Iterator
from struct import Struct
from typing import Any, ClassVar, Final, NamedTuple

from dagster_dataops.errors import DamagedFileError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.streams.core.stage import State
from dagster_dataops.streams.files.blocks import BLOCK_BYTES, LINE_BYTES
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.file_stages import FileCursor

_LENGTH: Final = Struct("<q")
_ENDED: Final = -1


class Frame(NamedTuple):
    """The bytes of a record.

    Attributes:
        path: The file.
        offset: The first byte of its length in the file.
        payload: The bytes.
    """

    path: str
    offset: int
    payload: bytes

    @property
    def end(self) -> int:
        """The byte behind the payload in the file."""
        return self.offset + _LENGTH.size + len(self.payload)


class FrameCursor(FileCursor):
    """Yield the frames of one file. The position is a byte, and the frames read from there on.

    Behind a wrong length nothing can be found: it is a failed item, and the file ends there.
    """

    saved: ClassVar[tuple[str, ...]] = ("position", "failed")

    @override
    def reset(self) -> None:
        super().reset()
        self._start = self._passed = 0

    @property
    def position(self) -> State:
        """The first byte of a block, and the number of frames that were read from there on."""
        return [self._start, self._passed + self.read]

    @position.setter
    def position(self, position: State) -> None:
        self._start, self._passed = (number + 0 for number in position)  # TypeError unless numbers

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        path = self.location.path
        if self._start == _ENDED:
            return
        try:
            with self.location.opened() as content:
                while frames := self._frames(content):
                    left = max(0, self._passed - len(frames))  # of a state with larger blocks
                    if not left:
                        yield self.begin_block(frames[self._passed :])
                    self._start, self._passed = frames[-1].end, left
                    self.begin_block([])
        except DamagedFileError as error:
            self._start, self._passed = _ENDED, 0
            self.counter.handle(path, error)

    def _frames(self, content: Content) -> list[Frame]:
        """Return the frames of the next block: at least one, but none at the end of the file."""
        frames: list[Frame] = []
        path, start = self.location.path, self._start
        data = content.read_at(BLOCK_BYTES, start)
        at = 0
        while at < len(data):
            end = self._end(data, at)
            if end is None or end > len(data):
                break
            frames.append(Frame(path, start + at, data[at + _LENGTH.size : end]))
            at = end
        if frames:
            return frames
        if content.failure is not None:
            raise content.failure
        return [self._long_frame(content, data)] if data else []

    def _end(self, data: bytes, at: int) -> int | None:
        """Return the end of the frame at a place; ``None`` if its length is incomplete."""
        if at + _LENGTH.size > len(data):
            return None
        (length,) = _LENGTH.unpack_from(data, at)
        if 0 <= length <= LINE_BYTES:
            return at + _LENGTH.size + int(length)
        if at:
            return None  # raised behind the frames before it
        reason = (
            f"has a record of {length:,} bytes at byte {self._start:,}; a length is from 0 to "
            f"{LINE_BYTES:,}, so the file is damaged, or is no OFRecord file"
        )
        raise DamagedFileError(self.location.path, reason)

    def _long_frame(self, content: Content, data: bytes) -> Frame:
        """Return a frame that is longer than a block."""
        path, start = self.location.path, self._start
        end = self._end(data, 0)
        if end is not None:
            data = content.read_at(end, start)
            if len(data) == end:
                return Frame(path, start, data[_LENGTH.size :])
            if content.failure is not None:
                raise content.failure
        wanted = "8 bytes of length" if end is None else f"{end:,} bytes"
        reason = (
            f"is truncated: at byte {start:,} begins a record with {wanted}, and the file has "
            f"{counted(len(data), 'bytes')} from there on"
        )
        raise DamagedFileError(path, reason)
