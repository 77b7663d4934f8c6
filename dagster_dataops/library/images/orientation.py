"""How an image must be turned to be upright, by its EXIF or XMP metadata."""

import re
import struct
from collections.abc import Mapping
from typing import Any, Final

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
