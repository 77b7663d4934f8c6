"""Locality-sensitive hashing: match similar signatures by bands of their rows."""

from array import array
from collections.abc import Sequence
from typing import Final

import xxhash

_RECALL: Final = 0.988  # mean probability of finding a pair at or above the threshold
_STEPS: Final = 50


def choose_bands(threshold: float, permutations: int) -> tuple[int, int]:
    """Return the numbers of bands and of rows per band that find pairs from ``threshold`` on.

    Signatures of similarity s agree in at least one band with probability
    ``1 - (1 - s^rows)^bands``. Among the shapes for which the mean of this probability between the
    threshold and 1 is at least 0.988, the result has the lowest mean below the threshold. If there
    is none, it has the highest mean above it.

    Args:
        threshold: A similarity between 0 and 1.
        permutations: The maximum length of a signature.
    """
    shapes = (
        (bands, rows)
        for rows in range(1, permutations + 1)
        for bands in range(1, permutations // rows + 1)
    )
    return min(shapes, key=lambda shape: _cost(threshold, *shape))


def _cost(threshold: float, bands: int, rows: int) -> tuple[float, float]:
    share = _mean_share(threshold, 1.0, bands, rows)
    return max(0.0, _RECALL - share), _mean_share(0.0, threshold, bands, rows)


def _mean_share(least: float, most: float, bands: int, rows: int) -> float:
    """Return the mean probability of finding pairs with a similarity from ``least`` to ``most``."""
    step = (most - least) / _STEPS
    similarities = (least + (number + 0.5) * step for number in range(_STEPS))
    return sum(1 - (1 - similarity**rows) ** bands for similarity in similarities) / _STEPS


def buckets_of(signature: Sequence[int], bands: int, rows: int) -> list[bytes]:
    """Return the buckets of a signature, one per band, 8 bytes each."""
    data = array("I", signature).tobytes()
    size = len(data) // len(signature) * rows
    return [
        xxhash.xxh3_64_digest(data[band * size : (band + 1) * size], seed=band)[::-1]
        for band in range(bands)
    ]
