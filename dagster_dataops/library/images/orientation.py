"""How an image must be turned to be upright, by its EXIF or XMP metadata."""

import io
import re
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO, Final

_PNG_END: Final = 1 << 17  # bytes
_LENGTH: Final = 4  # bytes of the length of a chunk, and of its name
_OTHERS: Final = 12  # bytes of a chunk without those that its length tells
_PIXELS: Final = b"IDAT"
_LAST: Final = b"IEND"
_EXIF_CHUNK: Final = b"eXIf"
_XMP_MARK: Final = b"XML:com.adobe.xmp"
_TAG: Final = 0x0112
_SHORT: Final = 3
_MOST: Final = 8
_XMP: Final = re.compile(rb'tiff:Orientation(?:="|>)\s*([0-9]+)')
_XMP_PLACES: Final = ("XML:com.adobe.xmp", "xmp")


def orientation_of(info: Mapping[Any, Any]) -> int:
    """Return the orientation that the metadata of an image tells, 1 to 8; 1 is upright.

    Args:
        info: The ``info`` of an image of Pillow.

    Raises:
        ValueError: The metadata is damaged, so that the orientation is not known.
    """
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
