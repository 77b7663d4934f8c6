"""`ImageOperator`: the options and the images of operators that read one image of a record."""

from typing import Any

from dagster_dataops.library.images.image_files import (
    MAX_BYTES,
    MAX_PIXELS,
    Animated,
    ImageSource,
    MaxPixels,
)
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.ranges import PositiveInt


class ImageOperator(Operator):
    """An operator that reads one image of a record.

    Args:
        input_key: Key of the file: a column, or a selector of one element.
        max_pixels: Most pixels of an image; a larger one is an error, before it is decoded.
        max_bytes: Most bytes of a file; a larger one is an error.
        animated: ``error`` for files of several pictures, or ``first`` to take the first.
        **kwargs: See `Operator`.
    """

    def __init__(
        self,
        *,
        input_key: str = "file",
        max_pixels: MaxPixels = MAX_PIXELS,
        max_bytes: PositiveInt = MAX_BYTES,
        animated: Animated = "error",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        name = f"images.{type(self).__name__}"
        self._images = ImageSource(name, input_key, max_pixels, max_bytes, animated)
