"""Vectors of all records in a file, and which of them are near to others."""

import base64
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.library.dedup.algorithms.representatives import Representatives, Similarity
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.records import Record

_BLOCK: Final = 512  # vectors that are compared at once
_KEPT_BLOCK: Final = 8192
_ROUNDING: Final = 1e-6  # of a cosine
_BITS: Final = 16  # of a bucket
_RECALL: Final = 0.99  # of pairs at the threshold
_MOST_TABLES: Final = 256
_SEED: Final = 0


def packed_vector(vector: object) -> str:
    """Return a vector as text: of length 1, in half precision.

    Raises:
        ValueError: It is no vector, or of length 0.
    """
    import numpy

    values = numpy.asarray(vector, numpy.float64)
    length = float(numpy.linalg.norm(values)) if values.ndim == 1 else 0.0
    if not 0 < length < math.inf:
        msg = f"a vector is a list of finite numbers that are not all 0; found {vector!r:.80}"
        raise ValueError(msg)
    return base64.b64encode((values / length).astype("<f2").tobytes()).decode()


def packed_column(column: FieldKey, record: Record) -> str:
    """Return the vector in a column as `packed_vector` does."""
    vectors = column.present(record)
    return packed_vector(vectors[0] if len(vectors) == 1 else None)


def stored_rows(path: Path, packed: Iterable[str], kind: str = "<f2") -> Any:
    """Write arrays of one length to a file, and return it as an array with a row for each.

    Args:
        path: The file, which must not exist.
        packed: The arrays in base64, as `packed_vector` returns vectors.
        kind: The type of their numbers.

    Raises:
        ValueError: They have different lengths.
    """
    import numpy

    count = size = 0
    with storage(path, "write"), path.open("xb") as file:
        for text in packed:
            row = base64.b64decode(text)
            if count and len(row) != size:
                numbers = counted(len(row) // 2, "numbers")
                msg = f"vector {count} has {numbers}, others {size // 2}"
                raise ValueError(msg)
            size = file.write(row)
            count += 1
    shape = (count, size // numpy.dtype(kind).itemsize)
    return numpy.memmap(path, kind, "r", shape=shape) if count else numpy.zeros(shape, kind)


def near_vectors(
    vectors: Any, threshold: float, exact_up_to: int, scratch: Path, max_bytes: int
) -> Iterator[tuple[int, int]]:
    """Yield position, and position of the vector that represents it: its own if it is kept.

    A vector is represented by the first kept one whose cosine with it is at least ``threshold``.

    Args:
        vectors: The vectors, of length 1 in half precision, in rows.
        threshold: The least cosine of vectors that are near.
        exact_up_to: With more vectors, only those in one bucket are compared.
        scratch: A folder for the buckets, which does not exist.
        max_bytes: Approximate limit of the memory with buckets.
    """
    if len(vectors) <= exact_up_to:
        return _near_by_all(vectors, threshold)
    tables = tables_for(threshold)
    similarity = Similarity(bands=tables, linkage="kept", limit=threshold, measure=_cosine)
    scratch.mkdir()
    return iter(Representatives.of(_sketches(vectors, tables), similarity, scratch, max_bytes))


def _near_by_all(vectors: Any, threshold: float) -> Iterator[tuple[int, int]]:
    """Compare each vector with all kept ones, a block at a time."""
    import numpy

    kept = numpy.zeros(vectors.shape, "<f2")
    positions: list[int] = []  # of the kept ones
    for start in range(0, len(vectors), _BLOCK):
        block = _unit(vectors[start : start + _BLOCK])
        before = len(positions)
        first = _first_near(kept[:before], block, threshold)
        near = block @ block.T >= threshold - _ROUNDING
        for number in range(len(block)):
            inside = [at - start for at in positions[before:]]
            owner = int(first[number])
            if owner < 0 and near[number, inside].any():
                owner = before + int(near[number, inside].argmax())
            if owner < 0:
                kept[len(positions)] = vectors[start + number]
                positions.append(start + number)
            yield start + number, positions[owner]


def _sketches(vectors: Any, tables: int) -> Iterator[list[Any]]:
    """Yield the buckets of each vector: on which sides of random hyperplanes it is."""
    import numpy

    width = vectors.shape[1]
    planes = numpy.random.default_rng(_SEED).standard_normal((width, tables * _BITS), "f4")
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        sides = (_unit(block) @ planes > 0).reshape(len(block), tables, _BITS)
        bits = numpy.packbits(sides, axis=2).astype("<u8")
        numbers = numpy.arange(tables, dtype="<u8") << _BITS
        buckets = (bits[:, :, 0] << 8 | bits[:, :, 1]) + numbers
        padded = numpy.zeros((len(block), width + width % 2), "<f2")
        padded[:, :width] = block
        for row, vector in zip(buckets.astype("<u8"), padded, strict=True):
            yield [row.tobytes().hex(), 0, base64.b64encode(vector.tobytes())]


def tables_for(threshold: float) -> int:
    """Return how many buckets a vector needs, so that pairs at a cosine are found."""
    agree = (1 - math.acos(min(1.0, threshold)) / math.pi) ** _BITS
    if agree >= 1:
        return 1
    return min(_MOST_TABLES, math.ceil(math.log(1 - _RECALL) / math.log(1 - agree)))


def _first_near(kept: Any, block: Any, threshold: float) -> Any:
    """Return for each vector of a block the first kept one that is near; -1 for none."""
    import numpy

    nearest = numpy.full(len(block), -1)
    for start in range(0, len(kept), _KEPT_BLOCK):
        near = block @ _unit(kept[start : start + _KEPT_BLOCK]).T >= threshold - _ROUNDING
        new = near.any(axis=1) & (nearest < 0)
        nearest[new] = start + near[new].argmax(axis=1)
    return nearest


def _unit(vectors: Any) -> Any:
    """Return vectors in single precision with the length 1."""
    import numpy

    values = vectors.astype("f4")
    return values / numpy.linalg.norm(values, axis=-1, keepdims=True)


def _cosine(left: Any, other: Any, _: float) -> float:
    """Return the cosine of two vectors, given as 32-bit words; 1 only for equal ones."""
    if (left == other).all():
        return 1.0
    cosine = float(_unit(left.view("<f2")) @ _unit(other.view("<f2")))
    return min(cosine + _ROUNDING, 1 - 1e-9)
