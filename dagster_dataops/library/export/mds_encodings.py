"""Encode the values of a column of an MDS shard."""

import base64
import json
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.export.number_arrays import CODES, item_bytes, number_bytes, shown

_ARRAY_CODES: Final = {
    "uint8": 8,
    "int8": 9,
    "uint16": 16,
    "int16": 17,
    "uint32": 32,
    "int32": 33,
    "float32": 34,
    "uint64": 64,
    "int64": 65,
    "float64": 66,
}
_SIZE_TYPES: Final = (("uint8", 1 << 8), ("uint16", 1 << 16), ("uint32", 1 << 32))
_MOST_AXES: Final = 63


class Encoding(NamedTuple):
    """An encoding of values.

    Attributes:
        name: Name of the encoding.
        size: Bytes of each value; ``None`` if values differ in size.
        encode: Return the bytes of a value, or raise a ValueError that says what was found.
    """

    name: str
    size: int | None
    encode: Callable[[Any], bytes]


def usual_encoding(value: object) -> str:
    """Return the name of the encoding of a value of JSON."""
    return {str: "str", int: "int", float: "float64"}.get(type(value), "json")


def encoding_of(column: str, name: str) -> Encoding:
    """Return the encoding of a name."""
    simple = {
        "str": Encoding(name, None, _text),
        "bytes": Encoding(name, None, _bytes),
        "json": Encoding(name, None, _json),
        "int": Encoding(name, 8, lambda value: _number(value, "int64")),
    }
    if name in simple:
        return simple[name]
    if name in CODES:
        return Encoding(name, item_bytes(name), lambda value: _number(value, name))
    kind, _, rest = name.partition(":")
    number, colon, axes = rest.partition(":")
    sizes = axes.split(",") if colon else []
    valid = name == "ndarray" or (kind == "ndarray" and number in CODES)
    if not valid or not all(map(_is_size, sizes)):
        msg = (
            f"columns gives {column!r} the encoding {name!r}; use 'str', 'int', 'json', 'bytes', "
            "a type of numbers such as 'float64', or 'ndarray:int32', perhaps with a length"
        )
        raise DefinitionError(msg)
    return _array_encoding(name, number, [int(size) for size in sizes])


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) > 0


def _array_encoding(name: str, kind: str, shape: list[int]) -> Encoding:
    def encode(value: Any) -> bytes:
        numbers, dimensions = _flat(value)
        if shape and dimensions != shape:
            msg = f"it holds a list of the shape {dimensions}, and the encoding has {shape}"
            raise ValueError(msg)
        written = kind or ("float64" if float in map(type, numbers) else "int64")
        before = b"" if kind else bytes([_ARRAY_CODES[written]])
        return (
            before + (b"" if shape else _shape_bytes(dimensions)) + number_bytes(numbers, written)
        )

    fixed = math.prod(shape) * item_bytes(kind) if kind and shape else None
    return Encoding(name, fixed, encode)


def _flat(value: Any) -> tuple[list[Any], list[int]]:
    """Flatten a list of numbers, which may be nested; return the numbers and the shape."""
    if isinstance(value, list) and value and not isinstance(value[0], list):
        return value, [len(value)]  # a list in it is found when it is written
    numbers, shape = value, list[int]()
    count = len(value) if isinstance(value, list) else 0
    while count and len(shape) < _MOST_AXES:
        shape.append(count)
        sizes = {len(item) if isinstance(item, list) else -1 for item in numbers}
        if sizes == {-1}:
            return numbers, shape
        count = sizes.pop() if len(sizes) == 1 else 0
        if count:
            numbers = [number for part in numbers for number in part]
    msg = f"it holds {shown(value)}, which is no array: a list that is not empty, of one shape"
    raise ValueError(msg)


def _shape_bytes(shape: list[int]) -> bytes:
    """Return a byte with the number of axes and the type of the sizes, and the sizes."""
    place = next((at for at, (_, most) in enumerate(_SIZE_TYPES) if max(shape) < most), 3)
    kind = _SIZE_TYPES[place][0] if place < len(_SIZE_TYPES) else "uint64"
    return bytes([len(shape) << 2 | place]) + number_bytes(shape, kind)


def _text(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    msg = f"it holds {shown(value)}, which is no text"
    raise ValueError(msg)


def _bytes(value: object) -> bytes:
    try:
        if isinstance(value, str):
            return base64.b64decode(value, validate=True)
    except ValueError:
        pass
    msg = f"it holds {shown(value)}, which is no base64 text"
    raise ValueError(msg)


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _number(value: object, kind: str) -> bytes:
    try:
        return number_bytes([value], kind)
    except ValueError:
        msg = f"it holds {shown(value)}, which is no {kind}"
        raise ValueError(msg) from None
