"""Perceptual hashes of images: 64 bits that are nearly the same for images that look alike."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from dagster_dataops.foundation.override import override
from dagster_dataops.library.images.image_files import ImageFile, images
from dagster_dataops.library.images.image_operator import ImageOperator
from dagster_dataops.records import Record

HashKind: TypeAlias = Literal["phash", "dhash", "ahash"]
_SIDE: Final = 8  # of the square of bits
_FINE: Final = 4 * _SIDE  # of the square of pixels for the cosine transform
_DIGITS: Final = 6  # of coefficients up to 200,000; the noise of their sums is smaller


class PerceptualHash(ImageOperator, images):
    """Write the perceptual hash of an image: 64 bits, as 16 hexadecimal digits.

    Reads the file in ``input_key="file"`` and writes ``output_key="image_hash"``. Images that look
    alike, such as one in two sizes or with another quality, have hashes in which few bits
    differ. ``by`` is ``phash`` (low frequencies of the cosine transform), ``dhash`` (rising or
    falling from pixel to pixel) or ``ahash`` (above or below the mean), the values of imagehash
    after the image was turned upright. Where imagehash decides a bit of ``phash`` by the
    rounding of its sums, as for one colour and for mirrored halves, it is 0 here, on every machine.
    Pixels of 16 bits are divided by 256; imagehash cuts them at 255. Needs the extra ``images``.

    `NearDuplicate` compares the hashes of all records.

    Source: the definitions of imagehash; Zauner et al. 2010. ``image_deduplicator`` of Data-Juicer
    has the bits of ``phash`` relative to the median without the mean of the image.

    Args:
        output_key: Column of the hash.
        by: ``phash``, ``dhash`` or ``ahash``.
    """

    def __init__(
        self,
        input_key: str = "file",
        output_key: str = "image_hash",
        *,
        by: HashKind = "phash",
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key=input_key, **kwargs)
        self._written, self._hash = output_key, hash_function(by)

    @override
    def forward(self, record: Record) -> Record:
        record[self._written] = f"{self._hash(self._images.of(record)):016x}"
        return record


def hash_function(by: HashKind) -> Callable[[ImageFile], int]:
    """Return the function from an image to its hash, 64 bits."""
    return {"phash": _phash, "dhash": _dhash, "ahash": _ahash}[by]


def _phash(image: ImageFile) -> int:
    import numpy as np

    transform = _cosines()
    coefficients = transform @ _small(image, _FINE, _FINE).astype(np.float64) @ transform.T
    rounded = np.round(coefficients, _DIGITS)
    return _bits(rounded > np.median(rounded))


def _dhash(image: ImageFile) -> int:
    pixels = _small(image, _SIDE + 1, _SIDE)
    return _bits(pixels[:, 1:] > pixels[:, :-1])


def _ahash(image: ImageFile) -> int:
    pixels = _small(image, _SIDE, _SIDE)
    return _bits(pixels > pixels.mean())


def _small(image: ImageFile, width: int, height: int) -> Any:
    """Return the luma of an image of another size, as an array of rows."""
    import numpy as np
    from PIL import Image

    return np.asarray(image.grey.resize((width, height), Image.Resampling.LANCZOS))


def _bits(matrix: Any) -> int:
    import numpy as np

    return int.from_bytes(np.packbits(matrix.ravel()).tobytes())


@lru_cache(maxsize=1)
def _cosines() -> Any:
    """Return the matrix of the low frequencies of the cosine transform (type II, not scaled)."""
    import numpy as np

    angles = np.outer(np.arange(_SIDE), 2 * np.arange(_FINE) + 1) * (np.pi / (2 * _FINE))
    return 2 * np.cos(angles)
