"""The frames of MP3 and AAC files, one after another."""

from collections.abc import Callable
from typing import Final, TypeAlias

LengthOf: TypeAlias = Callable[[bytes, int], int | None]
"""Returns the number of bytes of the frame at a position; ``None`` if there is no frame."""

_RATES: Final = {
    3: (44_100, 48_000, 32_000),
    2: (22_050, 24_000, 16_000),
    0: (11_025, 12_000, 8_000),
}
"""Samples a second, by the bits of the version: 3 for MPEG 1, 2 for MPEG 2, 0 for MPEG 2.5."""
_KBITS: Final = {  # a second, by whether it is MPEG 1 and by the bits of the layer, from index 1 on
    (True, 3): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 1): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 3): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 1): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_LAYER_1: Final = 3
_MPEG_1: Final = 3
_TAGS: Final = (b"TAG", b"APETAGEX", b"LYRICSBEGIN")  # behind the frames
_TAG_NAME: Final = max(map(len, _TAGS))
_ID3: Final = b"ID3"
_ID3_HEAD: Final = 10
_LONGEST_SEARCH: Final = 1 << 16  # bytes in front of the first frame
_COUNTS: Final = (b"Xing", b"Info")
_HAS_FRAMES, _HAS_BYTES = 1, 2
_ADTS_HEAD: Final = 7


def check_mp3(data: bytes) -> None:
    """Check that the last frame is complete, and that there are as many as the file declares.

    A file without a count of frames, or in free format, may end before its time between two frames.
    """
    first = _first(data, behind_id3(data, 0), _mp3_length)
    if first is None:
        return  # a decoder says that it is no sound
    frames, size = declared_by(data, first)
    if size is not None and first + size > len(data):
        there = len(data) - first
        msg = f"it is truncated: {size:,} bytes of sound are declared, {there:,} are there"
        raise ValueError(msg)
    count = _checked_frames(data, first, _mp3_length)
    if frames is not None and count < frames + 1:  # the first declares the count
        msg = f"it is truncated or damaged: {frames:,} frames are declared, {count - 1:,} are there"
        raise ValueError(msg)


def check_adts(data: bytes) -> None:
    """Check that the last frame of an AAC file is complete.

    Raises:
        ValueError: It is not.
    """
    first = _first(data, behind_id3(data, 0), _adts_length)
    if first is not None:
        _checked_frames(data, first, _adts_length)


def behind_id3(data: bytes, at: int) -> int:
    """Return the position behind a tag of ID3; the given one if there is none."""
    head = data[at : at + _ID3_HEAD]
    if head[:3] != _ID3 or len(head) < _ID3_HEAD:
        return at
    size = 0
    for byte in head[6:]:
        size = size << 7 | byte & 0x7F
    has_footer = head[5] & 0x10
    return at + size + (2 if has_footer else 1) * _ID3_HEAD


def declared_by(data: bytes, first: int) -> tuple[int | None, int | None]:
    """Return the frames and bytes that the first frame declares; ``None`` for none."""
    version, is_mono = data[first + 1] >> 3 & 3, data[first + 3] >> 6 == 3
    side = (17 if is_mono else 32) if version == _MPEG_1 else (9 if is_mono else 17)
    at = first + 4 + side
    if data[at : at + 4] not in _COUNTS:
        return None, None
    flags, at = int.from_bytes(data[at + 4 : at + 8], "big"), at + 8
    numbers: list[int | None] = []
    for flag in (_HAS_FRAMES, _HAS_BYTES):
        numbers.append(int.from_bytes(data[at : at + 4], "big") or None if flags & flag else None)
        at += 4 if flags & flag else 0
    return numbers[0], numbers[1]


def _checked_frames(data: bytes, at: int, length_of: LengthOf) -> int:
    """Return the number of frames from a position on."""
    count, form = 0, _form(data, at)
    while at < len(data):
        length = length_of(data, at)
        if length is None:
            behind = behind_id3(data, at)
            following = (
                None
                if data[at : at + _TAG_NAME].startswith(_TAGS)
                else _first(data, max(behind, at + 1), length_of)
            )
            if following is None:
                break  # what follows is no sound
            at = following
            continue
        if at + length > len(data) and _form(data, at) == form:
            there = len(data) - at
            msg = f"it is truncated: its last frame has {length:,} bytes, {there:,} are there"
            raise ValueError(msg)
        count, at = count + 1, at + length
    return count


def _form(data: bytes, at: int) -> tuple[int, int]:
    """Return the bits that all frames of a file share."""
    return data[at + 1] & 0xFE, data[at + 2] & 0x0C


def _first(data: bytes, at: int, length_of: LengthOf) -> int | None:
    """Return the position of the next frame that another one, or the end, follows."""
    end = min(len(data), at + _LONGEST_SEARCH)
    while (at := data.find(b"\xff", at, end)) >= 0:
        length = length_of(data, at)
        if length is not None:
            behind = at + length
            if behind >= len(data) or length_of(data, behind) is not None:
                return at
        at += 1
    return None


def _mp3_length(data: bytes, at: int) -> int | None:
    head = data[at : at + 4]
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return None
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    bits, rate, padding = head[2] >> 4, head[2] >> 2 & 3, head[2] >> 1 & 1
    if version not in _RATES or not layer or rate == 3 or not 0 < bits < 15:
        return None
    is_first = version == _MPEG_1
    bits_a_second = 1000 * _KBITS[is_first, layer][bits - 1]
    samples = _RATES[version][rate]
    if layer == _LAYER_1:
        return 4 * (12 * bits_a_second // samples + padding)
    return (72 if layer == 1 and not is_first else 144) * bits_a_second // samples + padding


def _adts_length(data: bytes, at: int) -> int | None:
    head = data[at : at + _ADTS_HEAD]
    if len(head) < _ADTS_HEAD or head[0] != 0xFF or head[1] & 0xF6 != 0xF0:
        return None
    length = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5
    return length if length >= _ADTS_HEAD else None
