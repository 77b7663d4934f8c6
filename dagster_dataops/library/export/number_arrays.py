"""Convert lists of numbers, and items with their places, to bytes, for the formats of trainers."""

import sys
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, Literal, TypeAlias

import orjson

from dagster_dataops.datasets.exporters.exporter import UnfitValueError
from dagster_dataops.errors import DefinitionError

IntegerType: TypeAlias = Literal["uint8", "int8", "int16", "uint16", "int32", "int64"]
"""Types of integers for token ids."""

CODES: Final = {
    "uint8": "B",
    "int8": "b",
    "uint16": "H",
    "int16": "h",
    "uint32": "I",
    "int32": "i",
    "uint64": "Q",
    "int64": "q",
    "float32": "f",
    "float64": "d",
}
"""Types of numbers, and their codes in `array`."""
MOST_BYTES: Final = (1 << 32) - 1
"""Most bytes of `with_places`: places have 32 bits."""
_DIGITS: Final = b"0123456789-,"
_SHOWN: Final = 40


def item_bytes(kind: str) -> int:
    """Return the size of a number of a type, in bytes."""
    return array(CODES[kind]).itemsize


def number_bytes(values: list[Any], kind: str) -> bytes:
    """Return numbers as the bytes of an array, in little-endian order.

    Raises:
        ValueError: A value does not fit the type; the text says which.
    """
    try:
        if kind.startswith("float"):
            fits = {int, float}.issuperset(map(type, values))
        else:  # a third of the time of a look at the types
            fits = orjson.dumps(values).translate(None, _DIGITS) == b"[]"
        numbers = array(CODES[kind], values) if fits else None
    except (TypeError, OverflowError):
        numbers = None
    if numbers is None or (kind == "float32" and float("inf") in map(abs, numbers)):
        raise ValueError(_fault(values, kind))
    return little(numbers).tobytes()


def little(numbers: "array[Any]") -> "array[Any]":
    """Convert numbers between the order of bytes of this machine and little-endian order, in place.

    Returns the same array.
    """
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def with_places(items: Sequence[bytes], description: bytes = b"") -> bytes:
    """Return a file of items: their number, their places, a description, and the items.

    Places are bytes from the start of the file, where each item begins and the last one ends. The
    number and the places are integers of 32 bits.
    """
    begin = 4 * (len(items) + 2) + len(description)
    places = accumulate(map(len, items), initial=begin)
    return b"".join([number_bytes([len(items), *places], "uint32"), description, *items])


def id_bytes(index: int, column: str, values: object, kind: str) -> bytes:
    """Return token ids as the bytes of an array; null has none."""
    if values is None:
        return b""
    try:
        if isinstance(values, list):
            return number_bytes(values, kind)
        problem = f"it holds {shown(values)}, which is no list of integers"
    except ValueError as error:
        problem = str(error)
    remedy = "Write ids by tokens.Encode, or give dtype a type that holds them."
    raise UnfitValueError(index, column, problem, remedy)


def end_bytes(end_id: int | None, kind: str) -> bytes:
    """Return the bytes of the id behind a text; nothing for ``None``."""
    try:
        return b"" if end_id is None else number_bytes([end_id], kind)
    except ValueError:
        msg = f"end_id is {end_id!r}, which dtype={kind!r} cannot hold"
        raise DefinitionError(msg) from None


def _fault(values: Sequence[object], kind: str) -> str:
    numbers = {int, float} if kind.startswith("float") else {int}
    for value in values:
        if type(value) not in numbers:
            return f"it holds {shown(value)} in a list of {kind}"
        if not _fits(value, kind):
            return f"it holds {shown(value)}, which {kind} cannot hold"
    return f"it is no list of {kind}"


def _fits(value: Any, kind: str) -> bool:
    try:
        (number,) = array(CODES[kind], [value])
    except OverflowError:
        return False
    return bool(abs(number) != float("inf"))


def shown(value: object) -> str:
    """Return the beginning of a value, for messages."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
