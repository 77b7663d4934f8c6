"""The size of an AVIF image by the boxes at its beginning."""

import io
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from dagster_dataops.datasets.file_values.completeness.containers import end_of_boxes
from dagster_dataops.library.images.image_heads import LARGE

_HEAD: Final = 8  # bytes of the head of a box
_BRAND: Final = b"avif"
_MOST_BYTES: Final = 1 << 20  # of the box with the facts
_VERSION: Final = 4  # bytes of version and flags
_WIDE_INDEX: Final = 1  # flag: numbers of properties have 15 bits
_XMP_ITEM: Final = b"mime"
_QUARTER_TURNS: Final = {1, 3}


class _Property(NamedTuple):
    kind: bytes
    content: bytes


def avif_size(file: BinaryIO) -> tuple[int, int] | None:
    """Return width and height of a large AVIF image, upright; Pillow would read all of it.

    Args:
        file: The file; its position is then the beginning.

    Returns:
        ``None`` for other files, which are left to Pillow: small ones, other formats, animations,
        and images with XMP metadata, which may turn them.

    Raises:
        ValueError: The file is truncated.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    head = file.read(_HEAD + 4)
    file.seek(0)
    if size <= LARGE or head[4:8] != b"ftyp" or head[_HEAD:] != _BRAND:
        return None
    end = end_of_boxes(file, size)
    if end > size:
        msg = f"it is truncated: it declares {end:,} bytes, and has {size:,}"
        raise ValueError(msg)
    facts = _facts(file, size)
    file.seek(0)
    return None if facts is None or _XMP_ITEM in facts else _size(facts)


def _facts(file: BinaryIO, size: int) -> bytes | None:
    """Return the content of the first box ``meta``; ``None`` for none, or for an animation."""
    at, facts = 0, None
    while at + _HEAD <= size:
        file.seek(at)
        head = file.read(_HEAD)
        length, kind = int.from_bytes(head[:4], "big"), head[4:]
        if kind == b"moov":
            return None
        if length < _HEAD:  # the last one, or of 64 bits
            break
        if kind == b"meta" and facts is None and length <= _MOST_BYTES:
            facts = file.read(length - _HEAD)[_VERSION:]
        at += length
    return facts


def _boxes(data: bytes) -> Iterator[_Property]:
    at = 0
    while at + _HEAD <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        if length < _HEAD:
            return
        yield _Property(data[at + 4 : at + _HEAD], data[at + _HEAD : at + length])
        at += length


def _size(facts: bytes) -> tuple[int, int] | None:
    """Return the upright size of the primary image; ``None`` if the boxes are of another form."""
    parts = dict(_boxes(facts))
    inner = list(_boxes(parts.get(b"iprp", b"")))
    known = [part for kind, content in inner if kind == b"ipco" for part in _boxes(content)]
    primary = parts.get(b"pitm", b"")[_VERSION:]
    numbers = [
        number
        for kind, content in inner
        if kind == b"ipma"
        for number in _numbers(content, int.from_bytes(primary, "big"))
    ]
    of_primary = [known[number - 1] for number in numbers if 0 < number <= len(known)]
    sides = [content[_VERSION:] for kind, content in of_primary if kind == b"ispe"]
    if len(sides) != 1 or len(sides[0]) != _HEAD:
        return None
    width, height = (int.from_bytes(side, "big") for side in (sides[0][:4], sides[0][4:]))
    turns = [content[0] & 3 for kind, content in of_primary if kind == b"irot" and content]
    return (height, width) if turns and turns[0] in _QUARTER_TURNS else (width, height)


def _numbers(data: bytes, item: int) -> list[int]:
    """Return the numbers of the properties of an item, from 1, by the content of a box ``ipma``."""
    wide_items, wide_numbers = data[:1] > b"\0", bool(data[3:4] and data[3] & _WIDE_INDEX)
    count, at = int.from_bytes(data[4:8], "big"), 8
    for _ in range(min(count, len(data))):
        size = 4 if wide_items else 2
        item_id, many = int.from_bytes(data[at : at + size], "big"), data[at + size : at + size + 1]
        at += size + 1
        length = 2 if wide_numbers else 1
        values = [
            int.from_bytes(data[place : place + length], "big") & (0x7FFF if wide_numbers else 0x7F)
            for place in range(at, at + length * (many[0] if many else 0), length)
        ]
        if item_id == item:
            return values
        at += length * len(values)
    return []
