"""``decoded_image``: the pixels of an image file, as Pillow, NumPy or PyTorch hold them."""

import io
import re
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import ConfigurationError, MissingExtraError

_FORM: Final = re.compile(r"(?P<kind>pil|torch|)(?P<mode>rgba|rgb|l|)(?P<bits>8|)")


class ImageForm(NamedTuple):
    """How an image is returned.

    Attributes:
        kind: ``pil`` (an image of Pillow), ``torch`` (a tensor) or ``""`` (a NumPy array).
        mode: The mode in Pillow: ``L``, ``RGB`` or ``RGBA``.
        has_bytes: Whether pixels are integers from 0 to 255, and not floats from 0 to 1.
    """

    kind: str
    mode: str
    has_bytes: bool


def image_form(text: str) -> ImageForm:
    """Return the form that a text such as ``torchrgb`` names."""
    match = _FORM.fullmatch(str(text))
    is_known = match and (match["kind"] or match["mode"])
    if match is None or not is_known or (match["bits"] and match["kind"] == "pil"):
        wanted = "pil, torch or no prefix, and l, rgb or rgba, such as torchrgb; with 8 for bytes"
        raise ConfigurationError("image_decode", text, wanted)
    return ImageForm(match["kind"], (match["mode"] or "rgb").upper(), bool(match["bits"]))


def check_packages(form: ImageForm) -> None:
    """Check that the packages of a form are installed."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise MissingExtraError("decoding images", "images") from None
    if form.kind == "torch":
        _to_tensor()


def decoded_image(data: bytes, form: ImageForm) -> Any:
    """Return an image in a form.

    Arrays have the shape ``(height, width)`` or ``(height, width, channels)``, tensors
    ``(height, width)`` or ``(channels, height, width)``.

    Raises:
        MissingExtraError: A package is not installed.
        OSError: The data is no image that Pillow can read.
    """
    check_packages(form)
    import PIL.Image

    with PIL.Image.open(io.BytesIO(data)) as file:
        image = file.convert(form.mode)
    if form.kind == "pil":
        return image
    array = _array(image, form)
    if form.kind == "":
        return array
    return _to_tensor()(array if array.ndim == 2 else array.transpose(2, 0, 1))


def _array(image: Any, form: ImageForm) -> Any:
    try:
        import numpy as np
    except ImportError:
        raise MissingExtraError("decoding images to arrays", "images") from None
    array = np.asarray(image)
    return array if form.has_bytes else array.astype(np.float32) / np.float32(255)


def _to_tensor() -> Any:
    try:
        from dagster_dataops.streams.torch_transfer import tensor_of_array
    except ImportError:
        feature = "image_decode='torchrgb' (images as tensors; 'rgb8' and 'pil' need no torch)"
        raise MissingExtraError(feature, "torch") from None
    return tensor_of_array
