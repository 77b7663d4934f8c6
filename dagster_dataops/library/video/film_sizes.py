"""Whether a film is complete by the sizes that it tells: FFmpeg takes a part of one for a whole."""

import io
from collections.abc import Callable
from typing import BinaryIO, Final

from dagster_dataops.errors import FileError
from dagster_dataops.library.audio.audio_files import check_aiff, check_wav
from dagster_dataops.library.file_column import LEAVE_OUT, decoding

_OPEN_SIZE: Final = 0xFFFFFFFF  # of a program that could not know the size
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


def check_complete(name: str, form: str, file: BinaryIO) -> None:
    """Check that a film or sound is not cut off.

    Args:
        name: Its path or URL, for errors.
        form: Its format, as FFmpeg names it.
        file: Its bytes; its position is then the beginning.

    Raises:
        FileError: It is cut off.
    """
    size = file.seek(0, io.SEEK_END)
    end = _ENDS.get(form, _open_end)
    told = end(file, size)
    if told > size:
        raise FileError(name, f"is truncated: it tells {told:,} bytes, and has {size:,}", LEAVE_OUT)
    chunks = _CHUNKS.get(form)
    if chunks is not None:
        with decoding(name, "read"):
            chunks(file)
    file.seek(0)


def _open_end(file: BinaryIO, size: int) -> int:
    """Return the end of a file that does not tell one."""
    del file
    return size


def _end_of_riff(file: BinaryIO, size: int) -> int:
    file.seek(0)
    head = file.read(_BOX_HEAD)
    told = int.from_bytes(head[4:], "little") + _BOX_HEAD
    return told if head[:4] == b"RIFF" and told < _OPEN_SIZE else size


def _end_of_boxes(file: BinaryIO, size: int) -> int:
    """Return where the last box of a QuickTime or MP4 file ends, of those that are known."""
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
            return size  # FFmpeg says what is damaged
        at += length
    return at


def _end_of_segment(file: BinaryIO, size: int) -> int:
    """Return where the segment of a Matroska file ends."""
    file.seek(0)
    head = file.read(_EBML_HEAD)
    length, at = _number(head, _EBML_ID_BYTES)
    if length is None or head[at + length :][:_EBML_ID_BYTES] != _SEGMENT:
        return size
    told, start = _number(head, at + length + _EBML_ID_BYTES)
    return size if told is None else start + told


def _number(data: bytes, at: int) -> tuple[int | None, int]:
    """Return a size in EBML, ``None`` for an open one, and the position behind it."""
    length = 9 - data[at].bit_length() if at < len(data) else 9
    if length > 8 or at + length > len(data):
        return None, at
    value = int.from_bytes(data[at : at + length], "big") & ((1 << 7 * length) - 1)
    return None if value == (1 << 7 * length) - 1 else value, at + length


_ENDS: Final[dict[str, Callable[[BinaryIO, int], int]]] = {
    "avi": _end_of_riff, "wav": _end_of_riff, "mov": _end_of_boxes, "matroska": _end_of_segment,
}  # fmt: skip
_CHUNKS: Final[dict[str, Callable[[BinaryIO], None]]] = {"wav": check_wav, "aiff": check_aiff}
