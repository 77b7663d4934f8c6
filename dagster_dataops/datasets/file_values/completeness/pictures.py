"""The chunks, segments and blocks of PNG, JPEG and GIF files, up to their ends."""

import re
import zlib
from typing import Final

_PNG_HEAD: Final = 8
_PNG_CHUNK: Final = 12  # bytes of a chunk without its content
_PNG_END: Final = b"IEND"
_CRITICAL: Final = range(ord("A"), ord("Z") + 1)  # the first letter of chunks that decoders need
_MARKER: Final = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]", re.DOTALL)
_ALONE: Final = frozenset(b"\x01\xd8")  # markers without content
_SCAN: Final = 0xDA
_JPEG_END: Final = 0xD9
_GIF_HEAD: Final = 13
_GIF_IMAGE: Final = 0x2C
_GIF_MORE: Final = 0x21
_GIF_END: Final = 0x3B


def check_png(data: bytes) -> None:
    """Check that all chunks are there, with the checksums that they declare.

    Raises:
        ValueError: One is missing or damaged.
    """
    at, view = _PNG_HEAD, memoryview(data)
    while at + _PNG_CHUNK <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        name, end = data[at + 4 : at + 8], at + _PNG_CHUNK + size
        if end > len(data):
            break
        declared = int.from_bytes(data[end - 4 : end], "big")
        if name[0] in _CRITICAL and zlib.crc32(view[at + 4 : end - 4]) != declared:
            msg = f"it is damaged: its chunk {name!r} at byte {at:,} has another checksum"
            raise ValueError(msg)
        if name == _PNG_END:
            return
        at = end
    msg = "it is truncated: its last chunk, IEND, is missing"
    raise ValueError(msg)


def check_jpeg(data: bytes) -> None:
    """Check that the marker of the end is there. What follows it is not looked at.

    Raises:
        ValueError: It is missing.
    """
    at = 0
    while (match := _MARKER.search(data, at)) is not None:
        marker, at = data[match.end() - 1], match.end()
        if marker == _JPEG_END:
            return
        if marker not in _ALONE:
            at += int.from_bytes(data[at : at + 2], "big")
    msg = "it is truncated: the marker of its end is missing"
    raise ValueError(msg)


def check_gif(data: bytes) -> None:
    """Check that all blocks are complete, up to the last one.

    Raises:
        ValueError: The file is truncated.
    """
    at = _GIF_HEAD + _colors(data, 10)
    while at < len(data):
        kind = data[at]
        if kind == _GIF_END:
            return
        if kind == _GIF_IMAGE:
            at = _behind_blocks(data, at + 11 + _colors(data, at + 9))
        elif kind == _GIF_MORE:
            at = _behind_blocks(data, at + 2)
        else:
            at += 1  # as decoders do
    msg = "it is truncated: its last block is missing"
    raise ValueError(msg)


def _colors(data: bytes, at: int) -> int:
    """Return the number of bytes of a table of colors, by the byte that declares it."""
    declared = data[at] if at < len(data) else 0
    return 3 << (declared & 7) + 1 if declared & 0x80 else 0


def _behind_blocks(data: bytes, at: int) -> int:
    while at < len(data) and data[at]:
        at += 1 + data[at]
    return at + 1
