"""`check_whole`: refuse files that are cut off, or whose checksums are wrong, without decoders."""

import re
import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Final

from dagster_dataops.datasets.file_values.completeness.containers import (
    check_aiff,
    check_boxes,
    check_riff,
    check_segment,
    check_wav,
)
from dagster_dataops.datasets.file_values.completeness.documents import check_archive, check_pdf
from dagster_dataops.datasets.file_values.completeness.flac_frames import check_flac
from dagster_dataops.datasets.file_values.completeness.ogg_pages import check_ogg
from dagster_dataops.datasets.file_values.completeness.sound_frames import check_adts, check_mp3
from dagster_dataops.datasets.file_values.media_types import type_of_content

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
    """Check that all chunks are there, with the checksums that they declare."""
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
    """Check that the marker of the end is there. What follows it is not looked at."""
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
    """Check that all blocks are complete, up to the last one."""
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


_CHECKS: Final[Mapping[str, tuple[Callable[[bytes], None], ...]]] = {
    "audio/aac": (check_adts,),
    "audio/aiff": (lambda data: check_aiff(BytesIO(data)),),
    "audio/flac": (check_flac,),
    "audio/mp4": (check_boxes,),
    "audio/mpeg": (check_mp3,),
    "audio/ogg": (check_ogg,),
    "audio/wav": (lambda data: check_wav(BytesIO(data)),),
    "application/epub+zip": (check_archive,),
    "application/pdf": (check_pdf,),
    "application/zip": (check_archive,),
    "image/avif": (check_boxes,),
    "image/gif": (check_gif,),
    "image/heic": (check_boxes,),
    "image/heif": (check_boxes,),
    "image/jpeg": (check_jpeg,),
    "image/png": (check_png,),
    "image/webp": (check_riff,),
    "video/3gpp": (check_boxes,),
    "video/mp4": (check_boxes,),
    "video/quicktime": (check_boxes,),
    "video/webm": (check_segment,),
    "video/x-matroska": (check_segment,),
    "video/x-msvideo": (check_riff,),
}
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_OPEN_DOCUMENT: Final = "application/vnd.oasis.opendocument."


def check_whole(data: bytes) -> None:
    """Check that a file is not cut off, as far as its format shows; others pass.

    Nothing is decoded, so damage in the middle is found only where a format has checksums: in Ogg
    and PNG files, and in the heads of the frames of FLAC files.

    Args:
        data: The content of the file.

    Raises:
        ValueError: It is cut off or damaged.
    """
    kind = type_of_content(data) or ""
    if kind.startswith((_OFFICE, _OPEN_DOCUMENT)):
        kind = "application/zip"
    for check in _CHECKS.get(kind, ()):
        check(data)
