"""`image_size`: the width and height in the first bytes of an image."""

import struct
from typing import Final

_STARTS_OF_FRAME: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_LARGEST: Final = 1 << 20  # pixels of a side


def image_size(head: bytes) -> tuple[int, int] | None:
    """Return the width and height of an image in pixels; ``None`` if they cannot be read.

    ``head`` has the first bytes of a file in one of the formats PNG, JPEG, GIF and WebP.
    """
    try:
        size = _size(head)
    except (struct.error, IndexError):
        return None
    return size if size and all(0 < side <= _LARGEST for side in size) else None


def _size(head: bytes) -> tuple[int, int] | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return _pair(struct.unpack_from(">II", head, 16))
    if head.startswith((b"GIF87a", b"GIF89a")):
        return _pair(struct.unpack_from("<HH", head, 6))
    if head.startswith(b"\xff\xd8"):
        return _jpeg_size(head)
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _webp_size(head)
    return None


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    at = 2
    while head[at] == 0xFF:
        marker = head[at + 1]
        if marker == 0xFF:  # filling
            at += 1
            continue
        if marker in _STARTS_OF_FRAME:
            height, width = struct.unpack_from(">HH", head, at + 5)
            return width, height
        at += 2 + struct.unpack_from(">H", head, at + 2)[0]
    return None


def _webp_size(head: bytes) -> tuple[int, int] | None:
    match head[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", head, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            sides = struct.unpack_from("3s3s", head, 24)
            width, height = (int.from_bytes(side, "little") + 1 for side in sides)
            return width, height
    return None


def _pair(numbers: tuple[int, ...]) -> tuple[int, int]:
    width, height = numbers
    return width, height
