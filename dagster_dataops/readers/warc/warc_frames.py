"""Find the start and end of each record in a WARC file, compressed per record or not at all.

Other libraries accept a truncated record as complete, or stop there without an error. So whole
records are cut out here before they are parsed.
"""

import re
import zlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from dagster_dataops.streams.files.contents import Content

_READ_BYTES: Final = 64 << 10
_MAX_HEADER_BYTES: Final = 1 << 20
_MAX_MEMBER_BYTES: Final = 1 << 30  # decompressed
_GZIP_MARK: Final = b"\x1f\x8b"
BLANK_LINE: Final = re.compile(rb"\r?\n\r?\n")  # some writers end lines with a line feed alone
_LENGTH: Final = re.compile(rb"(?im)^content-length:[ \t]*([0-9]+)[ \t]*\r?$")
_TYPE: Final = re.compile(rb"(?im)^warc-type:[ \t]*(\S+)[ \t]*\r?$")
_BEGIN: Final = b"WARC/"
_MOST_BLANK_BYTES: Final = 64  # between two records
_MARK: Final = re.compile(rb"\x1f\x8b\x08|WARC/[01]\.")
_MARK_BYTES: Final = 8

ReadAt = Callable[[int, int], bytes]


class WarcRecord(NamedTuple):
    """One record.

    Attributes:
        kind: The WARC-Type.
        content: The bytes of the record, including its header.
        end: The offset of its end.
    """

    kind: str
    content: bytes
    end: int


class WarcPart(NamedTuple):
    """Records that are stored together, from byte ``begin`` of the file on.

    They are one record of a plain file, or one gzip member.
    """

    begin: int
    frames: list[WarcRecord]


def warc_parts(content: Content, begin: int) -> Iterator[WarcPart]:
    """Yield the parts of a file, starting with the one at byte ``begin``.

    Raises:
        BadPartError: The next part is invalid or truncated.
    """
    while True:
        mark = content.read_at(len(_GZIP_MARK), begin)
        if not mark:
            return
        if mark == _GZIP_MARK:
            unpacked, end = _member(content, begin)
            yield WarcPart(begin, list(_records_in(unpacked, begin)))
        else:
            frame = record_at(content.read_at, begin, begin)
            if frame is None:
                return
            yield WarcPart(begin, [frame])
            end = frame.end
        begin = end


class BadPartError(ValueError):
    """A part of a WARC file is invalid.

    Attributes:
        begin: The offset of the part in the file.
    """

    def __init__(self, begin: int, reason: str) -> None:
        super().__init__(begin, reason)
        self.begin, self.reason = begin, reason


def _member(content: Content, begin: int) -> tuple[bytes, int]:
    """Decompress the gzip member at an offset; return its content and end offset."""
    unpacker, at, unpacked = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16), begin, bytearray()
    while not unpacker.eof:
        packed = content.read_at(_READ_BYTES, at)
        if not packed:
            raise BadPartError(begin, "is truncated")
        at += len(packed)
        try:
            unpacked += unpacker.decompress(packed)
        except zlib.error as error:
            raise BadPartError(begin, f"is damaged: {error}") from error
        if len(unpacked) > _MAX_MEMBER_BYTES:
            reason = "is over 1 GiB: records must be compressed one by one; use warcio recompress"
            raise BadPartError(begin, reason)
    return bytes(unpacked), at - len(unpacker.unused_data)


def _records_in(unpacked: bytes, begin: int) -> Iterator[WarcRecord]:
    def read_at(size: int, offset: int) -> bytes:
        return unpacked[offset : offset + size]

    at = 0
    while (frame := record_at(read_at, at, begin, in_member=True)) is not None:
        yield frame
        at = frame.end


def record_at(
    read_at: ReadAt, at: int, begin: int, *, in_member: bool = False
) -> WarcRecord | None:
    """Return the record at an offset; ``None`` if only blank lines follow.

    Args:
        read_at: Returns bytes, given a size and an offset.
        at: The offset.
        begin: The offset to show in messages.
        in_member: Whether the bytes are those of one gzip member.
    """
    size = _READ_BYTES
    while True:
        head = read_at(size, at)
        blank = len(head) - len(head.lstrip(b"\r\n"))
        if blank == len(head) < size:
            return None
        blank_line = BLANK_LINE.search(head, blank)
        if blank_line is not None:
            break
        if len(head) < size or size > _MAX_HEADER_BYTES:
            raise BadPartError(begin, "is truncated, or is not a WARC record")
        size *= 2
    header = head[blank : blank_line.end()]
    length, kind = _LENGTH.search(header), _TYPE.search(header)
    if not header.startswith(_BEGIN) or length is None or kind is None:
        raise BadPartError(begin, "is not a WARC record")
    whole = len(header) + int(length[1])
    content = read_at(whole, at + blank)
    if len(content) < whole:
        raise BadPartError(begin, "is truncated, or its Content-Length is wrong")
    blank_behind = _blank_bytes(read_at(_MOST_BLANK_BYTES, at + blank + whole), in_member=in_member)
    if blank_behind is None:
        raise BadPartError(begin, "is truncated, or its Content-Length is wrong")
    return WarcRecord(kind[1].decode("latin-1"), content, at + blank + whole + blank_behind)


def _blank_bytes(behind: bytes, *, in_member: bool) -> int | None:
    """Return the number of blank bytes at the end of a record; ``None`` if it does not end here.

    The standard wants two empty lines. Some writers end lines with a line feed alone, write other
    numbers of empty lines between records, or none after the last. The end of a gzip member, which
    is whole, is the end of its last record.
    """
    for end in (b"\r\n\r\n", b"\n\n"):
        if behind.startswith(end):
            return len(end)
    following = behind.lstrip(b"\r\n")
    blank = len(behind) - len(following)
    is_end = not behind or (in_member and not following and blank < _MOST_BLANK_BYTES)
    return blank if is_end or (blank and following.startswith(_BEGIN)) else None


def next_mark(content: Content, at: int) -> int | None:
    """Return the next offset at which a part may begin, from an offset on; ``None`` at the end."""
    while block := content.read_at(_READ_BYTES, at):
        mark = _MARK.search(block)
        if mark is not None:
            return at + mark.start()
        at += max(1, len(block) - _MARK_BYTES)
    return None
