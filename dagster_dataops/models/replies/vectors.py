"""The vectors in a reply."""

import array
import base64
import binascii
import math
import sys
from collections.abc import Mapping
from typing import Any, Final

from dagster_dataops.errors import BadReplyError, InvalidOutputError
from dagster_dataops.records import JsonValue

_BYTES: Final = 4  # of a number in base64
_NUMBERS: Final = frozenset({int, float})


def vectors_of(request: Mapping[str, Any], reply: Mapping[str, Any]) -> list[list[JsonValue]]:
    """Return the vectors of a reply in the order of the texts.

    A vector is a list of finite numbers, or base64 of 32-bit numbers, the lowest byte first. All
    have the length of the first.

    Raises:
        BadReplyError: Some are missing.
        InvalidOutputError: One is no vector, or has another length.
    """
    count = len(request["input"])
    items = reply.get("data")
    by_index = _by_index(items) if isinstance(items, list) else {}
    if sorted(by_index) != list(range(count)) or (isinstance(items, list) and len(items) != count):
        number = len(items) if isinstance(items, list) else 0
        shown = ", ".join(map(str, sorted(by_index)[:10])) or "none"
        reason = f"the reply has {number} vectors of the texts {shown}, not one of all {count}"
        raise BadReplyError(reason)
    vectors = [_vector(by_index[at], at) for at in range(count)]
    for at, vector in enumerate(vectors):
        if len(vector) != len(vectors[0]):
            reason = f"vector {at} has {len(vector)} numbers, vector 0 has {len(vectors[0])}"
            raise InvalidOutputError(reason)
    return vectors


def vector_length(reply: Mapping[str, Any]) -> int:
    """Return how many numbers the first vector of a reply has; 0 if it has no vector."""
    items = reply.get("data")
    try:
        return len(_vector(_by_index(items)[0], 0)) if isinstance(items, list) else 0
    except (InvalidOutputError, KeyError):
        return 0


def _by_index(items: list[Any]) -> dict[int, Any]:
    """Return the vectors by the number of their text: their order if they have no index."""
    vectors: dict[int, Any] = {}
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            continue
        index = item.get("index", at)
        if type(index) is int or (isinstance(index, float) and index.is_integer()):
            vectors[int(index)] = item.get("embedding")
    return vectors


def _vector(value: Any, at: int) -> list[JsonValue]:
    """Return a vector; refuse what is none."""
    vector: Any = _decoded(value) if isinstance(value, str) else value
    if not isinstance(vector, list) or not vector:
        raise InvalidOutputError(f"vector {at} is no list of numbers: {value!r:.80}")
    if not (set(map(type, vector)) <= _NUMBERS and all(map(math.isfinite, vector))):
        number = next(n for n, element in enumerate(vector) if not _is_number(element))
        reason = f"vector {at}: number {number} is {vector[number]!r:.40}, not a finite number"
        raise InvalidOutputError(reason)
    return list(vector)


def _is_number(value: Any) -> bool:
    return type(value) in _NUMBERS and math.isfinite(value)


def _decoded(text: str) -> list[float] | None:
    """Return the numbers of a vector in base64; ``None`` if it is none."""
    try:
        numbers = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(numbers) % _BYTES:
        return None
    values = array.array("f", numbers)
    if sys.byteorder == "big":
        values.byteswap()
    return values.tolist()
