"""Images that Pillow decodes: the formats that are read, and pixels that can be resized."""

import struct
from functools import lru_cache
from typing import Any, Final

from dagster_dataops.errors import FileError

FORMATS: Final = (
    "JPEG", "PNG", "WEBP", "GIF", "BMP", "DIB", "TIFF", "AVIF", "JPEG2000", "PPM", "ICO",
)  # fmt: skip
"""The formats of Pillow that are read: those of pictures, without those that run other programs."""
ONE_PICTURE: Final = frozenset({"MPO", "ICO"})
"""Formats whose further pictures are previews, or smaller."""
DECODER_ERRORS: Final = (
    ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError, SyntaxError,
    TypeError, ValueError, struct.error,
)  # fmt: skip
"""The errors of decoders for damaged files, without `FileError`, `MemoryError` and warnings."""
_DEEP: Final = frozenset({"I;16", "I;16B", "I;16L", "I;16N"})
_MODES: Final = frozenset(
    {"1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV"}
)
_KEPT: Final = frozenset({"L", "LA", "RGB", "RGBA"})


@lru_cache(maxsize=1)
def readable() -> tuple[str, ...]:
    """Return the formats that are read and that this version of Pillow has."""
    from PIL import Image

    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def shallow(file: str, image: Any) -> Any:
    """Return an image with 8 bits a channel; 16 bits are divided by 256.

    Pillow would cut larger values off.
    """
    if image.mode in _MODES:
        return image
    if image.mode in _DEEP or (image.mode == "I" and image.format == "PNG"):
        import numpy as np
        from PIL import Image

        return Image.fromarray((np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8))
    problem = f"has the mode {image.mode}, whose values have no fixed range"
    raise FileError(file, problem, "convert it to 8 or 16 bits a channel before")


def plain_pixels(file: str, image: Any) -> Any:
    """Return the pixels of an image in mode L, LA, RGB or RGBA, which can be resized.

    A palette becomes its colours, transparency an alpha channel, 16 bits a channel become 8, and
    other colour spaces RGB.

    Raises:
        FileError: The mode of the image has no fixed range of values.
    """
    pixels = shallow(file, image)
    if pixels.mode in _KEPT and "transparency" not in pixels.info:
        return pixels
    if pixels.mode in {"1", "La"}:
        return pixels.convert({"1": "L", "La": "LA"}[pixels.mode])
    clear = pixels.mode in {"PA", "RGBa"} or "transparency" in pixels.info
    return pixels.convert("RGBA" if clear else "RGB")
