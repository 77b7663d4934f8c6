"""``images.Strip``: remove the metadata of image files without a change of pixels."""

import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

from dagster_dataops.errors import FileError
from dagster_dataops.files import File
from dagster_dataops.library.file_column import decoding
from dagster_dataops.library.images.image_files import (
    MAX_BYTES,
    MAX_PIXELS,
    ImageFile,
    ImageSource,
    MaxPixels,
    images,
)
from dagster_dataops.library.images.image_heads import orientation_of
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record

_PLAIN: Final = frozenset({"BMP", "PPM"})  # have no metadata
_PNG_KEPT: Final = frozenset(
    {
        b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"cHRM", b"gAMA", b"sRGB", b"cICP", b"mDCV",
        b"cLLI", b"sBIT", b"bKGD", b"pHYs", b"acTL", b"fcTL", b"fdAT",
    }
)  # fmt: skip
_WEBP_KEPT: Final = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF"})
_SOI, _EOI, _SOS, _APP0, _APP2, _APP14, _APP15, _COM = (
    0xD8,
    0xD9,
    0xDA,
    0xE0,
    0xE2,
    0xEE,
    0xEF,
    0xFE,
)
_ALONE: Final = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a length
_STUFFED: Final = frozenset({0x00, *range(0xD0, 0xD8)})  # after 0xFF, in the data of a scan


class Strip(images):
    """Remove the metadata of images: EXIF with places, XMP, IPTC, comments, texts, thumbnails.

    Reads the file in ``input_key="file"`` and writes the new file to ``output_key=None``, by
    default in its place. Pixels and their encoding stay: parts of the file are left out. Of EXIF,
    the orientation alone stays, if it is not upright; damaged EXIF goes whole. JPEG, PNG and
    WebP can be stripped, BMP and PPM have nothing to strip; other formats are an error, which
    ``images.Convert`` avoids. A file without metadata keeps its reference. What follows the
    end of the image in the file goes, too. Needs the extra ``images``.

    Source: the specifications of JPEG, PNG and WebP; the parts that stay are listed, so that
    unknown ones go. Data-Juicer has no such operator.

    Args:
        input_key: Key of the file: a column, or a selector of one element.
        output_key: Column of the new file; ``None`` for ``input_key``.
        keep_profile: Whether the colour profile stays, by which the colours are shown.
        max_pixels: Most pixels of an image; a larger one is an error.
        max_bytes: Most bytes of a file; a larger one is an error.
    """

    def __init__(
        self,
        *,
        input_key: str = "file",
        output_key: str | None = None,
        keep_profile: bool = True,
        max_pixels: MaxPixels = MAX_PIXELS,
        max_bytes: PositiveInt = MAX_BYTES,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._images = ImageSource("images.Strip", input_key, max_pixels, max_bytes)
        self._written, self._profile = output_key, keep_profile

    def forward(self, record: Record) -> Record:
        image = self._images.of(record)
        image.decoded()  # a damaged file is an error here, too
        with decoding(image.name, "taken apart"):
            data = self._stripped(image)
        value: Any = self._images.column.value(record)
        if data != image.data:
            value = File(data, f"image/{image.format.lower()}")
        return self._images.column.written(record, value, self._written)

    def _stripped(self, image: ImageFile) -> bytes:
        if image.format in _PLAIN:
            return image.data
        parts = _PARTS.get(image.format)
        if parts is None:
            problem = f"is {image.format}, from which metadata cannot be removed"
            remedy = "convert it to png before, with images.Convert"
            raise FileError(image.name, problem, remedy)
        try:
            turned = orientation_of(image.opened.info)
        except ValueError:
            turned = 1
        exif = (
            b""
            if turned == 1
            else struct.pack("<2sHLHHHLHHL", b"II", 42, 8, 1, 274, 3, 1, turned, 0, 0)
        )
        return b"".join(parts(image.data, exif, self._profile))


def _jpeg_parts(data: bytes, exif: bytes, profile: bool) -> Iterator[bytes]:  # noqa: FBT001 - private
    """Yield the parts of a JPEG file that stay, with EXIF in front of the others."""
    yield data[:2]
    at, written = 2, False
    while True:
        while data[at + 1] == 0xFF:  # filled up
            at += 1
        marker = data[at + 1]
        if data[at] != 0xFF:
            msg = f"no marker at byte {at}"
            raise ValueError(msg)
        if not written and marker != _APP0:
            yield _jpeg_exif(exif)
            written = True
        if marker == _EOI:
            yield data[at : at + 2]
            return
        end = at + 2 if marker in _ALONE else at + 2 + int.from_bytes(data[at + 2 : at + 4])
        if marker == _SOS:
            end = _scan_end(data, end)
        if _stays(marker, data[at + 4 : at + 16], profile=profile):
            yield data[at:end]
        at = end


def _jpeg_exif(exif: bytes) -> bytes:
    if not exif:
        return b""
    return b"\xff\xe1" + (len(exif) + 8).to_bytes(2) + b"Exif\0\0" + exif


def _stays(marker: int, head: bytes, *, profile: bool) -> bool:
    if marker == _APP2 and head.startswith(b"ICC_PROFILE\0"):
        return profile
    if _APP0 <= marker <= _APP15:
        return (marker == _APP0 and head.startswith(b"JFIF\0")) or (
            marker == _APP14 and head.startswith(b"Adobe")
        )
    return marker != _COM


def _scan_end(data: bytes, start: int) -> int:
    """Return the position of the marker behind the data of a scan."""
    at = data.index(b"\xff", start)
    while data[at + 1] in _STUFFED:
        at = data.index(b"\xff", at + 2)
    return at


def _png_parts(data: bytes, exif: bytes, profile: bool) -> Iterator[bytes]:  # noqa: FBT001 - private
    kept = _PNG_KEPT | ({b"iCCP"} if profile else set())
    yield data[:8]
    at = 8
    while True:
        kind, end = data[at + 4 : at + 8], at + 12 + int.from_bytes(data[at : at + 4])
        if kind in kept:
            yield data[at:end]
        if kind == b"IHDR" and exif:
            body = b"eXIf" + exif
            yield len(exif).to_bytes(4) + body + zlib.crc32(body).to_bytes(4)
        if kind == b"IEND" or end > len(data):
            return
        at = end


def _webp_parts(data: bytes, exif: bytes, profile: bool) -> Iterator[bytes]:  # noqa: FBT001 - private
    kept = _WEBP_KEPT | ({b"ICCP"} if profile else set())
    parts, at = [], 12
    while at + 8 <= min(len(data), 8 + int.from_bytes(data[4:8], "little")):
        kind, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        end = at + 8 + size + size % 2
        if kind in kept:
            parts.append(bytearray(data[at:end]))
        at = end
    kinds = {bytes(part[:4]) for part in parts}
    if parts and parts[0][:4] == b"VP8X":
        flags = parts[0][8] & ~0x2C  # of the profile, EXIF and XMP
        parts[0][8] = flags | (0x20 if b"ICCP" in kinds else 0) | (0x08 if exif else 0)
    if exif:
        parts.append(bytearray(b"EXIF" + len(exif).to_bytes(4, "little") + exif))
    body = b"WEBP" + b"".join(parts)
    yield b"RIFF" + len(body).to_bytes(4, "little") + body


_PARTS: Final = {"JPEG": _jpeg_parts, "PNG": _png_parts, "WEBP": _webp_parts}
