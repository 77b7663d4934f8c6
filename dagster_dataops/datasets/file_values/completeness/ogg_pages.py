"""The pages of Ogg files: their checksums and numbers, and the last one."""

import io
import zlib
from typing import BinaryIO, Final

_PAGE: Final = b"OggS\0"
_FIRST_FLAG: Final = 2  # of the first page of a stream
_LAST_FLAG: Final = 4  # of its last page
_HEAD: Final = 27  # bytes of a page in front of its data
_SERIAL, _NUMBER, _SUM = slice(14, 18), slice(18, 22), slice(22, 26)
_MOST: Final = 1 << 17  # bytes; more than a page can have
_ONES: Final = 0xFFFFFFFF
_MIRRORED: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_NO_END: Final = "it is truncated: its last page is missing"


def check_ogg_end(file: BinaryIO) -> None:
    """Check that the last page is there, and complete; only the end of the file is read."""
    file.seek(max(0, file.seek(0, io.SEEK_END) - _MOST))
    data = file.read(_MOST)
    at = data.rfind(_PAGE)
    size = _size(data, at) if at >= 0 else None
    if size is None or not data[at + 5] & _LAST_FLAG:
        raise ValueError(_NO_END)


def check_ogg(data: bytes) -> None:
    """Check that all pages are there, with the checksums that they declare."""
    check_ogg_end(io.BytesIO(data[-_MOST:]))
    at, numbers = 0, dict[bytes, int]()
    while (start := data.find(_PAGE, at)) >= 0:
        size = _size(data, start)
        page = data[at : at + (size or 0)]
        if start != at or not page or not _has_its_sum(page):
            msg = f"it is damaged: the page at byte {at:,} has another checksum, or no beginning"
            raise ValueError(msg)
        serial, number = page[_SERIAL], int.from_bytes(page[_NUMBER], "little")
        if number != numbers.get(serial, number) and not page[5] & _FIRST_FLAG:
            msg = f"it is damaged: pages are missing before byte {at:,}"
            raise ValueError(msg)
        numbers[serial] = number + 1 & _ONES
        at += len(page)


def _size(data: bytes, at: int) -> int | None:
    """Return the number of bytes of a page; ``None`` if not all are there."""
    if at + _HEAD > len(data):
        return None
    segments = data[at + _HEAD - 1]
    sizes = data[at + _HEAD : at + _HEAD + segments]
    size = _HEAD + segments + sum(sizes)
    return size if len(sizes) == segments and at + size <= len(data) else None


def _has_its_sum(page: bytes) -> bool:
    """Return whether a page has its checksum: that of zlib, with the bits in the other order."""
    summed = page[: _SUM.start] + bytes(4) + page[_SUM.stop :]
    checksum = zlib.crc32(summed.translate(_MIRRORED), _ONES) ^ _ONES
    mirrored = checksum.to_bytes(4, "little").translate(_MIRRORED)
    return int.from_bytes(mirrored, "big") == int.from_bytes(page[_SUM], "little")
