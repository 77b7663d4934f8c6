"""Thumbnails of the images that records name, as data URLs for pages.

Pillow makes them. Without it, or of an image that it cannot read, a small file is shown itself.
"""

import io
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from dagster_dataops.datasets.file_values.file_contents import is_reference
from dagster_dataops.datasets.file_values.file_reads import READS
from dagster_dataops.datasets.file_values.image_pixels import (
    DECODER_ERRORS,
    plain_pixels,
    readable,
)
from dagster_dataops.datasets.file_values.media_types import type_of_content, type_of_name
from dagster_dataops.datasets.file_values.reference import FileReference
from dagster_dataops.errors import FileError

SHOWN: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"})
_MADE: Final = frozenset({"image/tiff", "image/avif", "image/jp2", "image/x-icon"})
"""Further types of which Pillow makes a picture, and browsers do not show all."""
_PIXELS: Final = 96  # of the longer side
_MOST_PIXELS: Final = 64_000_000  # of an image that is decoded
_MOST_BYTES: Final = 32 << 20  # of a file that is read
_SMALL_BYTES: Final = 8 << 10  # of a file that is shown itself


class Thumbnail(NamedTuple):
    """A small picture of an image.

    Attributes:
        row: The position of its record, from 0.
        column: The column.
        file: The path, URL or name of the image.
        url: The picture as a data URL.
    """

    row: int
    column: str
    file: str
    url: str


def thumbnails(records: Iterable[Mapping[str, Any]], most: int) -> list[Thumbnail]:
    """Return pictures of the first images that columns of records name, at most ``most``.

    Images that cannot be read have none.
    """
    pictures: list[Thumbnail] = []
    for row, column, reference in _images(records):
        if len(pictures) >= most:
            break
        url = data_url(reference)
        if url:
            pictures.append(Thumbnail(row, column, reference.file, url))
    return pictures


def _images(records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, str, FileReference]]:
    for row, record in enumerate(records):
        for column, value in record.items():
            for item in value if isinstance(value, list) else [value]:
                if not is_reference(item):
                    continue
                try:
                    reference = FileReference.of(item)
                except FileError:
                    continue
                kind = reference.media_type or type_of_name(reference.file)
                if kind in SHOWN or kind in _MADE:
                    yield row, column, reference


def data_url(reference: FileReference) -> str:
    """Return a picture of an image as a data URL; empty if it cannot be made."""
    try:
        with READS.unnoted():
            data = reference.read(_MOST_BYTES)
    except FileError:
        return ""
    kind = type_of_content(data)
    small = _shrunk(data) if kind in SHOWN or kind in _MADE else b""
    if small:
        return f"data:image/png;base64,{b64encode(small).decode()}"
    is_shown = kind in SHOWN and len(data) <= _SMALL_BYTES
    return f"data:{kind};base64,{b64encode(data).decode()}" if is_shown else ""


def _upright(image: Any) -> Any:
    """Return an image as its metadata turns it; as it is stored if that is damaged."""
    from PIL import ImageOps

    try:
        return ImageOps.exif_transpose(image)
    except DECODER_ERRORS:
        return image


def _shrunk(data: bytes) -> bytes:
    """Return a small PNG of an image; empty without Pillow, or if it cannot be decoded."""
    try:
        from PIL import Image
    except ImportError:
        return b""
    try:
        with Image.open(io.BytesIO(data), formats=readable()) as image:
            if image.width * image.height > _MOST_PIXELS:
                return b""
            image.draft("RGB", (_PIXELS, _PIXELS))
            pixels = plain_pixels("the image", _upright(image))
            pixels.thumbnail((_PIXELS, _PIXELS))
            buffer = io.BytesIO()
            pixels.save(buffer, "PNG")
    except Exception:  # noqa: BLE001 - decoders raise errors of many types
        return b""
    return buffer.getvalue()
