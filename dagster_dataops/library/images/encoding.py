"""Encode images with fixed settings, so that the same pixels always give the same bytes."""

from io import BytesIO
from typing import Annotated, Any, Final, Literal, TypeAlias

from annotated_types import Interval

from dagster_dataops.datasets.file_values import image_pixels
from dagster_dataops.files import File
from dagster_dataops.library.images.image_files import ImageFile

Format: TypeAlias = Literal["jpeg", "png", "webp"]
Quality: TypeAlias = Annotated[int, Interval(ge=1, le=100)]

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "jpeg": {"subsampling": "4:2:0", "optimize": False, "progressive": False},
    "png": {"compress_level": 6, "optimize": False},
    "webp": {"method": 4, "lossless": False, "exact": False},
}
_WITH_QUALITY: Final = frozenset({"jpeg", "webp"})
_WITH_ALPHA: Final = frozenset({"LA", "RGBA"})
_SAME_COLOURS: Final = {"L": "L", "LA": "L", "P": "RGB", "RGB": "RGB", "RGBA": "RGB"}


def plain_pixels(image: ImageFile) -> Any:
    """Return the upright pixels of an image in mode L, LA, RGB or RGBA, which can be resized."""
    return image_pixels.plain_pixels(image.name, image.still)


def usual_format(image: ImageFile) -> Format:
    """Return the format of an image if it can be written, else ``png``."""
    name = image.format.lower()
    return name if name in SETTINGS else "png"  # type: ignore[return-value]


def encoded(image: ImageFile, pixels: Any, form: Format, quality: int, background: str) -> File:
    """Return pixels as a file, with the colour profile of the image if it still fits.

    Args:
        image: The image that they are made of.
        pixels: An image in mode L, LA, RGB or RGBA.
        form: The format.
        quality: Quality of JPEG and WebP, 1 to 100.
        background: The colour behind transparent pixels in formats without transparency.
    """
    if form == "jpeg" and pixels.mode in _WITH_ALPHA:
        pixels = flattened(pixels, background)
    settings = {**SETTINGS[form], **({"quality": quality} if form in _WITH_QUALITY else {})}
    profile = image.opened.info.get("icc_profile")
    if profile and _SAME_COLOURS.get(image.mode) == pixels.mode.rstrip("A"):
        settings["icc_profile"] = profile
    pixels = pixels.copy()
    pixels.info = {}  # encoders write comments and metadata of it
    written = BytesIO()
    pixels.save(written, form.upper(), **settings)
    return File(written.getvalue(), f"image/{form}")


def flattened(pixels: Any, background: str) -> Any:
    """Return pixels in mode L or RGB, in front of a colour."""
    from PIL import Image, ImageColor

    mode = pixels.mode.rstrip("A")
    behind = Image.new(mode, pixels.size, ImageColor.getcolor(background, mode))
    behind.paste(pixels.convert(mode), mask=pixels.getchannel("A"))
    return behind
