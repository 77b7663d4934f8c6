"""Where the records of a WARC file begin and end, packed one by one or not at all.

Libraries take what is left of a record that was cut off for a record, or stop there without a
word; so whole records are cut out here, and only then read.
"""

import re
import zlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from dagster_dataops.streams.files.contents import Content

_READ_BYTES: Final = 64 << 10
_MOST_HEAD_BYTES: Final = 1 << 20
_MOST_MEMBER_BYTES: Final = 1 << 30  # unpacked
_GZIP_MARK: Final = b"\x1f\x8b"
_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"(?im)^content-length:[ \t]*([0-9]+)[ \t]*\r$")
_TYPE: Final = re.compile(rb"(?im)^warc-type:[ \t]*(\S+)[ \t]*\r$")

ReadAt = Callable[[int, int], bytes]


class Frame(NamedTuple):
    """One record.

    Attributes:
        kind: Its WARC-Type.
        content: Its bytes, head and all.
        end: Where it ends.
    """

    kind: str
    content: bytes
    end: int


class Part(NamedTuple):
    """What is unpacked together: a record of a plain file, a member of a packed one.

    Attributes:
        begin: Where it begins in the file.
        frames: Its records.
    """

    begin: int
    frames: list[Frame]


def parts(content: Content, begin: int) -> Iterator[Part]:
    """Yield the parts of a file from one that begins at byte ``begin``.

    Raises:
        BadPartError: The next is none, or is cut off.
    """
    while True:
        mark = content.read_at(len(_GZIP_MARK), begin)
        if not mark:
            return
        if mark == _GZIP_MARK:
            unpacked, end = _member(content, begin)
            yield Part(begin, list(_frames(unpacked, begin)))
        else:
            frame = frame_at(content.read_at, begin, begin)
            if frame is None:
                return
            yield Part(begin, [frame])
            end = frame.end
        begin = end


class BadPartError(ValueError):
    """What should be a record is none.

    Attributes:
        begin: Where it begins in the file.
    """

    def __init__(self, begin: int, reason: str) -> None:
        super().__init__(begin, reason)
        self.begin, self.reason = begin, reason


def _member(content: Content, begin: int) -> tuple[bytes, int]:
    """Return what is packed from a position on, and where that ends."""
    unpacker, at, unpacked = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16), begin, bytearray()
    while not unpacker.eof:
        packed = content.read_at(_READ_BYTES, at)
        if not packed:
            raise BadPartError(begin, "is cut off")
        at += len(packed)
        try:
            unpacked += unpacker.decompress(packed)
        except zlib.error as error:
            raise BadPartError(begin, f"is damaged: {error}") from error
        if len(unpacked) > _MOST_MEMBER_BYTES:
            reason = "is over a gigabyte: records have to be packed one by one; warcio recompress"
            raise BadPartError(begin, reason)
    return bytes(unpacked), at - len(unpacker.unused_data)


def _frames(unpacked: bytes, begin: int) -> Iterator[Frame]:
    at = 0
    while (
        frame := frame_at(lambda size, offset: unpacked[offset : offset + size], at, begin)
    ) is not None:
        yield frame
        at = frame.end


def frame_at(read_at: ReadAt, at: int, begin: int) -> Frame | None:
    """Return the record at a position; ``None`` if only blank lines are left.

    Args:
        read_at: Returns so many bytes from a position.
        at: The position.
        begin: What messages call it.

    Raises:
        BadPartError: There is none, or it is cut off.
    """
    size = _READ_BYTES
    while True:
        head = read_at(size, at)
        blank = len(head) - len(head.lstrip(b"\r\n"))
        if blank == len(head) < size:
            return None
        ends = head.find(_END, blank)
        if ends >= 0:
            break
        if len(head) < size or size > _MOST_HEAD_BYTES:
            raise BadPartError(begin, "is cut off, or is no WARC record")
        size *= 2
    found = head[blank : ends + len(_END)]
    length, kind = _LENGTH.search(found), _TYPE.search(found)
    if not found.startswith(b"WARC/") or length is None or kind is None:
        raise BadPartError(begin, "is no WARC record")
    whole = len(found) + int(length[1])
    content = read_at(whole, at + blank)
    if len(content) < whole:
        raise BadPartError(begin, "is cut off, or its Content-Length is wrong")
    behind = read_at(len(_END), at + blank + whole)
    if behind not in {_END, b""}:  # some writers leave the last out
        raise BadPartError(begin, "is cut off, or its Content-Length is wrong")
    end = at + blank + whole + len(behind)
    return Frame(kind[1].decode("latin-1"), content, end)
