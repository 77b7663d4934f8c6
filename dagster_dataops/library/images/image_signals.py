"""Numbers of an image."""

from itertools import product
from typing import Final

from dagster_dataops.library.images.image_files import ImageFile, ImageSize

_SIDE: Final = 2048  # pixels of the squares that are worked on


def aspect_ratio(image: ImageFile | ImageSize) -> float:
    """Return the width divided by the height."""
    width, height = image.size
    return width / height


def brightness(image: ImageFile) -> float:
    """Return the mean of the luma, 0 to 1."""
    levels = image.grey.histogram()
    total = sum(level * count for level, count in enumerate(levels))
    return float(total / (255 * sum(levels)))


def entropy(image: ImageFile) -> float:
    """Return the entropy of the histogram of the luma, in bits."""
    return abs(float(image.grey.entropy()))  # one colour has -0.0


def sharpness(image: ImageFile) -> float:
    """Return the variance of the Laplacian of the luma.

    It is computed in whole numbers, so that it is the same on every machine. Outside of the image
    are its mirrored pixels, without those of the edge.
    """
    import numpy as np

    grey = np.pad(np.asarray(image.grey), 1, "reflect")
    count = total = squares = 0
    height, width = grey.shape
    for top, left in product(range(0, height - 2, _SIDE), range(0, width - 2, _SIDE)):
        rows = grey[top : top + _SIDE + 2, left : left + _SIDE + 2].astype(np.int32)
        around = rows[:-2, 1:-1] + rows[2:, 1:-1] + rows[1:-1, :-2] + rows[1:-1, 2:]
        values = around - 4 * rows[1:-1, 1:-1]
        count += values.size
        total += int(values.sum(dtype=np.int64))
        squares += int((values * values).sum(dtype=np.int64))
    return (squares * count - total * total) / (count * count)
