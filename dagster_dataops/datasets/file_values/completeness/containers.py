"""Check files of RIFF, IFF, ISO media boxes and Matroska by the sizes that they declare."""

import io
from typing import BinaryIO, Final

_OPEN_SIZE: Final = 0xFFFFFFFF  # of a program that could not know the size
_OPEN_SIZES: Final = frozenset({0, _OPEN_SIZE})
_BOXES: Final = frozenset(
    {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"udta", b"uuid", b"meta"}
)
"""The boxes outside of others. Behind the first fragment, ``moof``, none is looked at."""
_BOX_HEAD: Final = 8  # bytes
_LONG_BOX: Final = 1  # its size follows, in 64 bits
_LAST_BOX: Final = 0  # it ends with the file
_EBML_ID_BYTES: Final = 4
_SEGMENT: Final = b"\x18S\x80g"
_EBML_HEAD: Final = 4096  # bytes; more than in front of the content of a segment


def check_riff(data: bytes) -> None:
    """Check that a RIFF file, such as WAV, WebP or AVI, has the bytes that it declares.

    Raises:
        ValueError: It is truncated.
    """
    _check_end(end_of_riff(io.BytesIO(data), len(data)), len(data))


def check_boxes(data: bytes) -> None:
    """Check that the boxes of an MP4, QuickTime, AVIF or HEIC file are complete.

    Raises:
        ValueError: The file is truncated.
    """
    _check_end(end_of_boxes(io.BytesIO(data), len(data)), len(data))


def check_segment(data: bytes) -> None:
    """Check that the segment of a Matroska or WebM file is complete.

    Raises:
        ValueError: The file is truncated.
    """
    _check_end(end_of_segment(io.BytesIO(data), len(data)), len(data))


def _check_end(declared: int, size: int) -> None:
    if declared > size:
        msg = f"it is truncated: it declares {declared:,} bytes, and has {size:,}"
        raise ValueError(msg)


def end_of_riff(file: BinaryIO, size: int) -> int:
    """Return the end that a RIFF file declares; its size if it declares none."""
    file.seek(0)
    head = file.read(_BOX_HEAD)
    declared = int.from_bytes(head[4:], "little") + _BOX_HEAD
    return declared if head[:4] == b"RIFF" and declared < _OPEN_SIZE else size


def end_of_boxes(file: BinaryIO, size: int) -> int:
    """Return where the last box of an ISO media file ends, of those that are known."""
    at = 0
    while at + _BOX_HEAD <= size:
        file.seek(at)
        head = file.read(2 * _BOX_HEAD)
        length, kind = int.from_bytes(head[:4], "big"), head[4:8]
        if kind not in _BOXES or length == _LAST_BOX:
            return size
        if length == _LONG_BOX:
            length = int.from_bytes(head[8:], "big")
        if length < _BOX_HEAD:
            return size  # a decoder says what is damaged
        at += length
    return at


def end_of_segment(file: BinaryIO, size: int) -> int:
    """Return the end that the segment of a Matroska file declares; the size of the file if none."""
    file.seek(0)
    head = file.read(_EBML_HEAD)
    length, at = _number(head, _EBML_ID_BYTES)
    if length is None or head[at + length :][:_EBML_ID_BYTES] != _SEGMENT:
        return size
    declared, start = _number(head, at + length + _EBML_ID_BYTES)
    return size if declared is None else start + declared


def _number(data: bytes, at: int) -> tuple[int | None, int]:
    """Return a size in EBML, ``None`` for an open one, and the position behind it."""
    length = 9 - data[at].bit_length() if at < len(data) else 9
    if length > 8 or at + length > len(data):
        return None, at
    value = int.from_bytes(data[at : at + length], "big") & ((1 << 7 * length) - 1)
    return None if value == (1 << 7 * length) - 1 else value, at + length


def check_wav(file: BinaryIO) -> None:
    """Check that the sound of a WAV file is complete.

    Raises:
        ValueError: It is not.
    """
    file.seek(0)
    _check_chunks(file, "little" if file.read(4) == b"RIFF" else "big", b"data")


def check_aiff(file: BinaryIO) -> None:
    """Check that the sound of an AIFF file is complete.

    Raises:
        ValueError: It is not.
    """
    _check_chunks(file, "big", b"SSND")


def _check_chunks(file: BinaryIO, order: str, sound: bytes) -> None:
    """Check that the chunk of the sound is complete, in a RIFF or IFF file."""
    end, at = file.seek(0, io.SEEK_END), 12
    while at + 8 <= end:
        file.seek(at)
        head = file.read(8)
        size = int.from_bytes(head[4:], order)  # type: ignore[arg-type]
        if head[:4] == sound:
            if at + 8 + size > end and size not in _OPEN_SIZES:
                problem = f"{end - at - 8:,} are there"
                msg = f"it is truncated: {size:,} bytes of sound are declared, {problem}"
                raise ValueError(msg)
            return
        at += 8 + size + size % 2
