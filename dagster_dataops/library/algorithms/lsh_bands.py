"""Locality-sensitive hashing: match similar signatures by bands of their rows."""

import struct
from array import array
from collections.abc import Sequence

import xxhash


def choose_bands(threshold: float, permutations: int) -> tuple[int, int]:
    """Return the numbers of bands and of rows per band that separate best at ``threshold``.

    Signatures of similarity s agree in at least one band with probability
    ``1 - (1 - s^rows)^bands``. The result minimizes the sum of the error areas below and above the
    threshold.

    Args:
        threshold: A similarity between 0 and 1.
        permutations: The length of a signature.
    """
    shapes = (
        (bands, rows)
        for rows in range(1, permutations + 1)
        for bands in range(1, permutations // rows + 1)
    )
    return min(shapes, key=lambda shape: _errors(threshold, *shape))


def _errors(threshold: float, bands: int, rows: int, steps: int = 50) -> float:
    below, above = threshold / steps, (1 - threshold) / steps
    middles = [step + 0.5 for step in range(steps)]
    found = sum(1 - (1 - (middle * below) ** rows) ** bands for middle in middles)
    missed = sum((1 - (threshold + middle * above) ** rows) ** bands for middle in middles)
    return found * below + missed * above


def pack_buckets(signature: Sequence[int], bands: int, rows: int) -> str:
    """Return the buckets of a signature, one per band, as text for `unpack_buckets`."""
    data = array("I", signature).tobytes()
    size = len(data) // len(signature) * rows
    buckets = (
        xxhash.xxh3_64_intdigest(data[band * size : (band + 1) * size], seed=band)
        for band in range(bands)
    )
    return struct.pack(f"<{bands}Q", *buckets).hex()


def unpack_buckets(packed: str) -> tuple[int, ...]:
    """Return the buckets from the text that `pack_buckets` returned."""
    return struct.unpack(f"<{len(packed) // 16}Q", bytes.fromhex(packed))
