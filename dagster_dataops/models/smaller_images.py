"""Make images smaller before they are sent to a model."""

from io import BytesIO
from typing import Final

from dagster_dataops.datasets.file_values.image_pixels import (
    DECODER_ERRORS,
    ONE_PICTURE,
    plain_pixels,
    readable,
)
from dagster_dataops.errors import FileError, MissingExtraError
from dagster_dataops.models.replies.image_sizes import image_size

_JPEG: Final = "image/jpeg"
_QUALITY: Final = 90  # of JPEG


def within(side: int, data: bytes, media_type: str, name: str) -> tuple[bytes, str]:
    """Return an image with a longer side of at most ``side`` pixels, and its media type.

    A smaller image is returned as it is. Else a JPEG becomes a JPEG, any other image a PNG.

    Raises:
        FileError: It cannot be decoded, or has several pictures.
        MissingExtraError: Pillow or numpy is not installed.
    """
    size = image_size(data)
    if size is not None and max(size) <= side:
        return data, media_type
    try:
        import numpy as np  # noqa: F401 - `plain_pixels` needs it for some images
        from PIL import Image, ImageOps
    except ImportError:
        raise MissingExtraError("the option max_side", "images") from None
    try:
        with Image.open(BytesIO(data), formats=readable()) as opened:
            if max(opened.size) <= side:
                return data, media_type
            if opened.format not in ONE_PICTURE and getattr(opened, "n_frames", 1) > 1:
                problem = "has several pictures, of which max_side would send the first alone"
                raise FileError(
                    name, problem, "name a file with one picture, or leave out max_side"
                )
            pixels = plain_pixels(name, ImageOps.exif_transpose(opened))
            pixels.thumbnail((side, side), Image.Resampling.LANCZOS)
            form = "JPEG" if media_type == _JPEG else "PNG"
            target = BytesIO()
            pixels.save(target, form, quality=_QUALITY)
    except (*DECODER_ERRORS, Image.DecompressionBombError) as error:
        reason = f"cannot be decoded: {error}"
        raise FileError(name, reason, "mend the file, or leave it out") from error
    return target.getvalue(), f"image/{form.lower()}"
