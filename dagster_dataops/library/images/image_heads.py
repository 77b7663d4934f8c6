"""Read the heads of images: how to turn one upright, and the size of a WebP image."""

import io
import re
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO, Final

_PNG_END: Final = 1 << 17  # bytes
_LENGTH: Final = 4  # bytes of the length of a chunk, and of its name
_OTHERS: Final = 12  # bytes of a chunk without those that its length declares
_PIXELS: Final = b"IDAT"
_LAST: Final = b"IEND"
_EXIF_CHUNK: Final = b"eXIf"
_XMP_MARK: Final = b"XML:com.adobe.xmp"
_TAG: Final = 0x0112
_SHORT: Final = 3
_MOST: Final = 8
_XMP: Final = re.compile(rb'tiff:Orientation(?:="|>)\s*([0-9]+)')
_WEBP_HEAD: Final = 30  # bytes
_WEBP_CHUNKS: Final = 12  # where they begin
_HAS_METADATA: Final = 0x0C  # flags for EXIF and XMP
_METADATA: Final = {b"EXIF": "exif", b"XMP ": "xmp"}
_SIDE: Final = 0x3FFF  # 14 bits
LARGE: Final = 1 << 20
_XMP_PLACES: Final = ("XML:com.adobe.xmp", "xmp")


def orientation_of(info: Mapping[Any, Any]) -> int:
    """Return the orientation that the metadata of an image tells, 1 to 8; 1 is upright."""
    value = None
    if info.get("exif"):
        value = _of_exif(bytes(info["exif"]))
    if value is None:
        value = next((value for value in map(_of_xmp, map(info.get, _XMP_PLACES)) if value), 1)
    if not 0 <= value <= _MOST:
        msg = f"its EXIF or XMP metadata has the orientation {value}"
        raise ValueError(msg)
    return value or 1  # 0 is written for upright, too


def has_late_orientation(file: BinaryIO, info: Mapping[Any, Any]) -> bool:
    """Return whether a PNG file may tell its orientation behind its pixels.

    Only the end of a well-formed file is read. The position of the file stays.

    Args:
        file: The file.
        info: The ``info`` of its image of Pillow, which is not decoded.
    """
    if "exif" in info or not info.keys().isdisjoint(_XMP_PLACES):
        return False
    position = file.tell()
    try:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - _PNG_END))
        behind = _behind_pixels(file.read(_PNG_END))
        if behind is None:  # another form, or much metadata
            file.seek(0)
            behind = file.read()
    finally:
        file.seek(position)
    return _EXIF_CHUNK in behind or _XMP_MARK in behind


def _behind_pixels(end: bytes) -> bytes | None:
    """Return what follows the name of the last chunk of pixels; ``None`` if it is not found.

    The chunk is found backwards. From it, the lengths of chunks lead to the end of the file.
    """
    at = len(end)
    while (at := end.rfind(_PIXELS, 0, at)) >= _LENGTH:
        names = _chunks_from(end, at - _LENGTH)
        if names:
            length = int.from_bytes(end[at - _LENGTH : at], "big")
            return end[at + _LENGTH + length :]
    return None


def _chunks_from(end: bytes, at: int) -> list[bytes]:
    """Return the names of the chunks from a position to the end of a file; empty if none fit."""
    names = []
    while at + _OTHERS <= len(end):
        names.append(end[at + _LENGTH : at + 2 * _LENGTH])
        at += int.from_bytes(end[at : at + _LENGTH], "big") + _OTHERS
    return names if at == len(end) and names[-1] == _LAST else []


def webp_size(file: BinaryIO) -> tuple[int, int] | None:
    """Return width and height of a large WebP image, upright; Pillow would read all of it.

    Args:
        file: The file; its position is then the beginning.

    Returns:
        ``None`` for other files, of which Pillow tells more: small ones, and other formats.

    Raises:
        ValueError: The file is truncated, or its metadata is damaged.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    head = file.read(_WEBP_HEAD)
    file.seek(0)
    if size <= LARGE or head[:4] != b"RIFF" or head[8:12] != b"WEBP":
        return None
    told = int.from_bytes(head[4:8], "little") + 8
    if told > size:
        msg = f"it is truncated: it declares {told:,} bytes, and has {size:,}"
        raise ValueError(msg)
    sides = _webp_sides(head)
    if sides is None or head[12:16] != b"VP8X" or not head[20] & _HAS_METADATA:
        return sides
    width, height = sides
    return (height, width) if orientation_of(_webp_metadata(file, told)) > 4 else sides


def _webp_sides(head: bytes) -> tuple[int, int] | None:
    """Return width and height as they are stored; ``None`` if the head has another form."""
    kind = head[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:], "little")
    if kind == b"VP8L" and head[20] == 0x2F:  # its mark
        bits = int.from_bytes(head[21:25], "little")
        return 1 + (bits & _SIDE), 1 + (bits >> 14 & _SIDE)
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01*":
        width, height = struct.unpack("<HH", head[26:])
        return width & _SIDE, height & _SIDE
    return None


def _webp_metadata(file: BinaryIO, end: int) -> dict[str, bytes]:
    """Return the chunks of metadata, as Pillow names them."""
    metadata, at = {}, _WEBP_CHUNKS
    while at + 8 <= end:
        file.seek(at)
        head = file.read(8)
        size = int.from_bytes(head[4:], "little")
        if head[:4] in _METADATA:
            metadata[_METADATA[head[:4]]] = file.read(size)
        at += 8 + size + size % 2
    file.seek(0)
    return metadata


def _of_exif(data: bytes) -> int | None:
    """Return the value of the tag in the first directory; ``None`` if it has none."""
    data = data.removeprefix(b"Exif\0\0")
    order = {b"II": "<", b"MM": ">"}.get(data[:2], "no order")  # which `struct` refuses
    try:
        start = struct.unpack_from(f"{order}L", data, 4)[0]
        entries = struct.unpack_from(f"{order}H", data, start)[0]
        for number in range(entries):
            tag, kind, count, value = struct.unpack_from(
                f"{order}HHLH", data, start + 2 + 12 * number
            )
            if tag == _TAG and (kind, count) == (_SHORT, 1):
                return int(value)
    except struct.error:
        msg = "its EXIF metadata is damaged, so its orientation is not known"
        raise ValueError(msg) from None
    return None


def _of_xmp(value: object) -> int | None:
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    match = _XMP.search(data) if isinstance(data, bytes) else None
    return None if match is None else int(match[1])
