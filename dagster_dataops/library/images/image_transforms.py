"""Operators that make another file of an image: resized, converted, cropped."""

import math
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from dagster_dataops.errors import DefinitionError, FileError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.file_column import LEAVE_OUT
from dagster_dataops.library.images.encoding import (
    Format,
    Quality,
    encoded,
    flattened,
    plain_pixels,
    usual_format,
)
from dagster_dataops.library.images.image_files import ImageFile, images
from dagster_dataops.library.images.image_operator import ImageOperator
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record

Resampling: TypeAlias = Literal["lanczos", "bicubic", "bilinear", "hamming", "box", "nearest"]
Box: TypeAlias = Sequence[int]
_BOX_NUMBERS: Final = 4


class ImageTransform(ImageOperator):
    """An operator from an image to another image. A subclass defines `changed`.

    Args:
        output_key: Column of the new file; ``None`` for ``input_key``.
        format: ``jpeg``, ``png`` or ``webp``; ``None`` for that of the image, and for ``png`` if
            it has another one.
        quality: Quality of JPEG and WebP, 1 to 100.
        background: Colour behind transparent pixels in JPEG: a name, or ``#rrggbb``.
        **kwargs: See `ImageOperator`.

    Raises:
        DefinitionError: ``background`` is no colour.
    """

    def __init__(
        self,
        *,
        output_key: str | None = None,
        format: Format | None = None,  # noqa: A002 - the name of the option
        quality: Quality = 90,
        background: str = "white",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._written, self._format = output_key, format
        self._quality, self._background = quality, _checked_colour(background)

    def changed(self, image: ImageFile, record: Record) -> Any:
        """Return the new pixels; ``None`` if the file needs no change."""
        raise NotImplementedError

    def forward(self, record: Record) -> Record:
        image = self._images.of(record)
        pixels = self.changed(image, record)
        form = self._format or usual_format(image)
        if pixels is None and form == image.format.lower() and _is_plain(image):
            value: Any = self._images.column.value(record)
        else:
            pixels = plain_pixels(image) if pixels is None else pixels
            value = encoded(image, pixels, form, self._quality, self._background)
        return self._images.column.written(record, value, self._written)


class Resize(ImageTransform, images):
    """Resize images to a width, a height, or a box of both.

    Reads the file in ``input_key="file"`` and writes the new file to ``output_key=None``, by
    default in its place. With ``width`` or ``height`` alone, the other one follows. With both,
    ``fit="inside"`` makes the largest image of the same shape that is in the box, ``cover`` fills
    the box and cuts off what is outside of it on both sides, ``stretch`` changes the shape. The
    pixels are those of Pillow's ``ImageOps.contain``, ``ImageOps.fit`` and ``Image.resize``.

    An upright image that fits already is decoded, and keeps its file, bytes and metadata, unless it
    gets another ``format``; smaller ones fit unless ``allow_upscaling``. New files are upright and
    have no metadata but the colour profile. The bytes depend on the versions of Pillow and its
    libraries (libjpeg-turbo, zlib-ng, libwebp). Needs the extra ``images``.

    Source: ``ImageOps`` of Pillow; Data-Juicer resizes videos only.

    Args:
        width: Width in pixels; ``None`` follows from the height.
        height: Height in pixels; ``None`` follows from the width.
        fit: ``inside``, ``cover`` or ``stretch``; counts if width and height are given.
        resample: The filter of Pillow.
        allow_upscaling: Whether small images are made larger.
    """

    def __init__(
        self,
        *,
        width: PositiveInt | None = None,
        height: PositiveInt | None = None,
        fit: Literal["inside", "cover", "stretch"] = "inside",
        resample: Resampling = "lanczos",
        allow_upscaling: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if width is None and height is None:
            msg = "give a width, a height, or both"
            raise DefinitionError(msg)
        self._width, self._height, self._fit = width, height, fit
        self._upscale, self._resample = allow_upscaling, resample

    @override
    def changed(self, image: ImageFile, record: Record) -> Any:
        from PIL import Image, ImageOps

        target = self._target(image.size)
        if target == image.size:
            return None
        method = Image.Resampling[self._resample.upper()]
        pixels = plain_pixels(image)
        if self._fit == "cover" and self._width and self._height:
            return ImageOps.fit(pixels, target, method)
        return pixels.resize(target, method)

    def _target(self, size: tuple[int, int]) -> tuple[int, int]:
        """Return the size of the new image."""
        width, height = size
        most_wide, most_high = self._width or math.inf, self._height or math.inf
        if not self._upscale and width <= most_wide and height <= most_high:
            return size
        if self._width and self._height and self._fit != "inside":
            return self._width, self._height
        if width * most_high >= height * most_wide:
            return int(most_wide), max(1, round(height / width * most_wide))
        return max(1, round(width / height * most_high)), int(most_high)


class Convert(ImageTransform, images):
    """Convert images to a format, and to colours or grey.

    Reads the file in ``input_key="file"`` and writes the new file to ``output_key=None``, by
    default in its place. ``channels`` are ``RGB``, ``L`` (grey) or ``RGBA``; transparent pixels
    become those of ``background`` without an alpha channel. New files are upright and have no
    metadata but the colour profile. An upright image that has the format and the channels is
    decoded, and keeps its file. The bytes depend on the versions of Pillow and its libraries
    (libjpeg-turbo, zlib-ng, libwebp). Needs the extra ``images``.

    Source: ``Image.convert`` of Pillow.

    Args:
        channels: ``RGB``, ``L`` or ``RGBA``; ``None`` for those of the image.
    """

    def __init__(
        self, *, channels: Literal["RGB", "L", "RGBA"] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._channels = channels

    @override
    def changed(self, image: ImageFile, record: Record) -> Any:
        clear = "transparency" in image.opened.info
        if self._channels is None or (self._channels == image.mode and not clear):
            return None
        pixels = plain_pixels(image)
        if self._channels != "RGBA" and pixels.mode in {"LA", "RGBA"}:
            pixels = flattened(pixels, self._background)
        return pixels.convert(self._channels)


class Crop(ImageTransform, images):
    """Cut a box out of images.

    Reads the file in ``input_key="file"`` and the box in ``box_key="box"``, and writes the new file
    to ``output_key=None``, by default in place of the file. A box is ``[left, top, right,
    bottom]`` in pixels of the upright image, as in Pillow; right and bottom are outside of it. With
    ``box``, all images have that one. A box that is not inside of the image is an error of the
    record. New files have no metadata but the colour profile. The bytes depend on the versions of
    Pillow and its libraries. Needs the extra ``images``.

    Source: ``Image.crop`` of Pillow, which fills what is outside of the image.

    Args:
        box: The box of all images; ``None`` reads it in ``box_key``.
        box_key: Column of the box.
    """

    def __init__(self, *, box: Box | None = None, box_key: str = "box", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if box is not None and _box_fault(box):
            msg = f"box is {box!r}, which {_box_fault(box)}"
            raise DefinitionError(msg)
        self._box, self._box_key = box, FieldKey(box_key)

    @override
    def changed(self, image: ImageFile, record: Record) -> Any:
        box = self._box if self._box is not None else self._box_key.value(record)
        width, height = image.size
        fault = _box_fault(box)
        if not fault and (min(box) < 0 or box[2] > width or box[3] > height):
            fault = f"is not inside of its {width} x {height} pixels"
        if fault:
            raise FileError(image.name, f"its box {box!r} {fault}", LEAVE_OUT)
        return plain_pixels(image).crop(tuple(box))


def _is_plain(image: ImageFile) -> bool:
    """Return whether an image is one picture, upright as it is stored; it is decoded whole."""
    return image.still is not None and image.is_upright and image.frames == 1


def _box_fault(box: object) -> str:
    """Return a clause about what is wrong with a box; empty if nothing is."""
    if not isinstance(box, Sequence) or isinstance(box, str) or len(box) != _BOX_NUMBERS:
        return "is no list of left, top, right and bottom"
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in box):
        return "has numbers that are not whole"
    left, top, right, bottom = box
    return "" if left < right and top < bottom else "has no pixels"


def _checked_colour(name: str) -> str:
    from PIL import ImageColor

    try:
        ImageColor.getrgb(name)
    except ValueError:
        msg = f"background is {name!r}, which is no colour; give a name, or #rrggbb"
        raise DefinitionError(msg) from None
    return name
