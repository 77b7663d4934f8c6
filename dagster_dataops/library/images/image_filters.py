"""Filters by measurements of an image: size, aspect ratio, brightness, sharpness, entropy."""

from typing import Any

from dagster_dataops.foundation.override import override
from dagster_dataops.library.file_column import FileFilter
from dagster_dataops.library.filters.rules import bounds
from dagster_dataops.library.images.image_files import ImageFile, ImageSize, images
from dagster_dataops.library.images.image_operator import ImageOperator
from dagster_dataops.library.images.image_signals import (
    aspect_ratio,
    brightness,
    entropy,
    sharpness,
)
from dagster_dataops.operators.options.ranges import AtLeastZeroFloat, Fraction, PositiveInt
from dagster_dataops.records import Record


class ImageFilter(ImageOperator, FileFilter):
    """A filter by measurements of an image. A subclass sets ``rules``."""

    @override
    def subject(self, record: Record) -> ImageFile:
        return self._images.of(record)


class SizeFilter(ImageOperator, FileFilter):
    """A filter by the size of an image, of which only the head is read. It sets ``rules``."""

    @override
    def subject(self, record: Record) -> ImageSize:
        return self._images.size_of(record)


class Size(SizeFilter, images):
    """Keep images of ``min_width`` to ``max_width`` and ``min_height`` to ``max_height`` pixels.

    Reads the head of the file in ``input_key="file"``. Of files above 1 MiB, size and version are
    checked, not the digest. The image counts upright, as its metadata turns it. ``None`` is no
    limit. Signals ``image_width``, ``image_height``; reasons ``low_image_width``,
    ``high_image_width``, ``low_image_height``, ``high_image_height``. Needs the extra ``images``.

    Source: ``image_shape_filter`` of Data-Juicer.

    Args:
        min_width: Smallest width to keep; ``None`` for no limit.
        max_width: Largest width to keep; ``None`` for no limit.
        min_height: Smallest height to keep; ``None`` for no limit.
        max_height: Largest height to keep; ``None`` for no limit.
    """

    def __init__(
        self,
        *,
        min_width: PositiveInt | None = None,
        max_width: PositiveInt | None = None,
        min_height: PositiveInt | None = None,
        max_height: PositiveInt | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules = [
            *bounds("image_width", lambda image: image.size[0], min_width, max_width),
            *bounds("image_height", lambda image: image.size[1], min_height, max_height),
        ]


class AspectRatio(SizeFilter, images):
    """Keep images whose width divided by their height is ``min_ratio`` to ``max_ratio``.

    Reads the head of the file in ``input_key="file"``. Of files above 1 MiB, size and version are
    checked, not the digest. The image counts upright, as its metadata turns it. ``None`` is no
    limit. Signal ``image_aspect_ratio``; reasons ``low_image_aspect_ratio``,
    ``high_image_aspect_ratio``. Needs the extra ``images``.

    Source: ``image_aspect_ratio_filter`` of Data-Juicer, with its defaults.

    Args:
        min_ratio: Smallest quotient to keep; ``None`` for no limit.
        max_ratio: Largest quotient to keep; ``None`` for no limit.
    """

    def __init__(
        self,
        *,
        min_ratio: AtLeastZeroFloat | None = 0.333,
        max_ratio: AtLeastZeroFloat | None = 3.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules = bounds("image_aspect_ratio", aspect_ratio, min_ratio, max_ratio)


class Brightness(ImageFilter, images):
    """Keep images whose mean brightness is ``min_brightness`` to ``max_brightness``.

    Reads the file in ``input_key="file"``. The brightness is the mean of the luma, 0 for black and
    1 for white: Pillow's mode L, of which ``ImageStat`` gives the mean, divided by 255.
    Transparency is left out. ``None`` is no limit. Signal ``image_brightness``; reasons
    ``low_image_brightness``, ``high_image_brightness``. Needs the extra ``images``.

    Source: the luma of Pillow; ``video`` and ``image`` filters of Data-Juicer have none.

    Args:
        min_brightness: Smallest mean to keep, 0 to 1; ``None`` for no limit.
        max_brightness: Largest mean to keep, 0 to 1; ``None`` for no limit.
    """

    def __init__(
        self,
        *,
        min_brightness: Fraction | None = 0.05,
        max_brightness: Fraction | None = 0.98,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules = bounds("image_brightness", brightness, min_brightness, max_brightness)


class Sharpness(ImageFilter, images):
    """Keep images whose sharpness is ``min_sharpness`` to ``max_sharpness``.

    Reads the file in ``input_key="file"``. The sharpness is the variance of the Laplacian of the
    luma (0 to 255): 0 for one colour, below about 100 for blurred photographs. It depends on the
    size: compare images of one size. The same as ``cv2.Laplacian(grey, CV_64F).var()``.
    ``None`` is no limit. Signal ``image_sharpness``; reasons ``low_image_sharpness``,
    ``high_image_sharpness``. Needs the extra ``images``.

    Source: Pech-Pacheco et al. 2000, Diatom autofocusing in brightfield microscopy.

    Args:
        min_sharpness: Smallest variance to keep; ``None`` for no limit.
        max_sharpness: Largest variance to keep; ``None`` for no limit.
    """

    def __init__(
        self,
        *,
        min_sharpness: AtLeastZeroFloat | None = 100.0,
        max_sharpness: AtLeastZeroFloat | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules = bounds("image_sharpness", sharpness, min_sharpness, max_sharpness)


class Entropy(ImageFilter, images):
    """Keep images whose entropy is ``min_entropy`` to ``max_entropy`` bits.

    Reads the file in ``input_key="file"``. The entropy is that of the histogram of the luma, as
    Pillow's ``Image.entropy``: 0 for one colour, 8 for equally many pixels of each of 256 values.
    ``None`` is no limit. Signal ``image_entropy``; reasons ``low_image_entropy``,
    ``high_image_entropy``. Needs the extra ``images``.

    Source: ``Image.entropy`` of Pillow; Shannon et al. 1948.

    Args:
        min_entropy: Smallest entropy to keep, in bits; ``None`` for no limit.
        max_entropy: Largest entropy to keep, in bits; ``None`` for no limit.
    """

    def __init__(
        self,
        *,
        min_entropy: AtLeastZeroFloat | None = 1.0,
        max_entropy: AtLeastZeroFloat | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules = bounds("image_entropy", entropy, min_entropy, max_entropy)
