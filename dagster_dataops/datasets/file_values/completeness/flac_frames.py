"""The frames of FLAC files: their numbers, and the checksum of the last one."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dagster_dataops.datasets.file_values.completeness.sound_frames import behind_id3

_MARK: Final = b"fLaC"
_BLOCK_HEAD: Final = 4
_LAST_BLOCK: Final = 0x80
_TOTAL, _TOTAL_END = 13, 18  # in the first block: 4 bits of something else, 36 of the number
_SYNC: Final = re.compile(rb"\xff[\xf8\xf9]")
_LONGEST_HEAD: Final = 16
_TAG_BYTES: Final = 128  # of a tag behind the frames


def _table(polynomial: int, width: int) -> tuple[int, ...]:
    values = []
    for byte in range(256):
        value = byte << width - 8
        for _ in range(8):
            value = value << 1 ^ (polynomial if value >> width - 1 else 0)
            value &= (1 << width) - 1
        values.append(value)
    return tuple(values)


_SUM_8: Final = _table(0x07, 8)
_SUM_16: Final = _table(0x8005, 16)


class _Frame(NamedTuple):
    """The head of a frame: where it begins, its number, and its samples of a channel."""

    at: int
    number: int
    samples: int
    counts_samples: bool


def check_flac(data: bytes) -> None:
    """Check that all frames follow one another, and that the last one is complete.

    Damage within a frame that is not the last one is for a decoder to find.
    """
    start = behind_id3(data, 0)
    metadata = _told(data, start)
    if metadata is None:
        return  # a decoder says that it is no sound
    total, at = metadata
    end = len(data) - (_TAG_BYTES if data[-_TAG_BYTES:].startswith(b"TAG") else 0)
    count, last = _followed(data, at)
    if total and count < total:
        msg = f"it is truncated or damaged: {total:,} samples are declared, {count:,} are there"
        raise ValueError(msg)
    if last is not None and not _has_its_sum(data[last:end]):
        msg = "it is truncated or damaged: its last frame has another checksum"
        raise ValueError(msg)


def _told(data: bytes, at: int) -> tuple[int, int] | None:
    """Return the number of samples that a file declares, and the position behind its metadata."""
    total, is_last = 0, False
    if data[at : at + 4] != _MARK:
        return None
    at += 4
    while not is_last:
        head = data[at : at + _BLOCK_HEAD]
        if len(head) < _BLOCK_HEAD:
            return None
        kind, is_last = head[0] & 0x7F, bool(head[0] & _LAST_BLOCK)
        block = at + _BLOCK_HEAD
        if kind == 0:
            total = int.from_bytes(data[block + _TOTAL : block + _TOTAL_END], "big") & (1 << 36) - 1
        at = block + int.from_bytes(head[1:], "big")
    return total, at


def _followed(data: bytes, at: int) -> tuple[int, int | None]:
    """Return the samples of the frames that follow one another, and where the last one begins."""
    samples, frames, last = 0, 0, None
    for frame in _heads(data, at):
        if frame.number == (samples if frame.counts_samples else frames):
            samples, frames, last = samples + frame.samples, frames + 1, frame.at
    return samples, last


def _heads(data: bytes, at: int) -> Iterator[_Frame]:
    """Yield what looks like the head of a frame, with the checksum of one."""
    for match in _SYNC.finditer(data, at):
        frame = _head(data[match.start() : match.start() + _LONGEST_HEAD], match.start())
        if frame is not None:
            yield frame


def _head(head: bytes, at: int) -> _Frame | None:
    if len(head) < 6 or head[3] & 1:
        return None
    extra = 8 - (head[4] ^ 0xFF).bit_length()  # ones in front: bytes of the number, or 0
    if extra in {1, 8}:
        return None
    length = max(1, extra)
    number = head[4] & (0x7F if length == 1 else (1 << 7 - length) - 1)
    for byte in head[5 : 4 + length]:
        number = number << 6 | byte & 0x3F
    place, size_code, rate_code = 4 + length, head[2] >> 4, head[2] & 15
    size_bytes = {6: 1, 7: 2}.get(size_code, 0)
    size = int.from_bytes(head[place : place + size_bytes], "big") + 1
    place += size_bytes + {12: 1, 13: 2, 14: 2}.get(rate_code, 0)
    value = 0
    for byte in head[:place]:
        value = _SUM_8[value ^ byte]
    if place >= len(head) or head[place] != value:
        return None
    samples = size if size_bytes else _block_size(size_code)
    return None if samples is None else _Frame(at, number, samples, bool(head[1] & 1))


def _block_size(code: int) -> int | None:
    if code == 1:
        return 192
    if 2 <= code <= 5:
        return 576 << code - 2
    return 256 << code - 8 if code >= 8 else None


def _has_its_sum(frame: bytes) -> bool:
    value = 0
    for byte in frame[:-2]:
        value = value << 8 & 0xFFFF ^ _SUM_16[value >> 8 ^ byte]
    return value == int.from_bytes(frame[-2:], "big")
