"""Keys as bytes that are ordered as the values are: numbers, then texts, then missing values."""

import struct
from typing import Final

_POSITIVE: Final = struct.Struct(">BdH")
_NEGATIVE: Final = struct.Struct(">Bd")
_REST: Final = struct.Struct(">H")
_IS_NEGATIVE, _IS_POSITIVE, _IS_TEXT = 1, 2, b"\x03"
_MISSING: Final = b"\xff"
_TEXT_END: Final = b"\0\0"  # less than a zero in a text, which is written as 0, 255
_EXACT: Final = 1 << 53  # floats hold all integers up to it
_MIDDLE: Final = 1 << 15
_INVERTED: Final = bytes(range(255, -1, -1))


def ordered_key(value: str | float | None, *, reverse: bool) -> bytes:
    """Return the bytes of a number or a text; ``None`` and NaN come last.

    Numbers are compared exactly, also integers of 64 bits with floats; texts by code points. No key
    is the beginning of another one, so keys of several columns are joined.

    Args:
        value: The value.
        reverse: Whether the largest value comes first, and texts before numbers.
    """
    if isinstance(value, str):
        text = value.encode(errors="surrogatepass").replace(b"\0", b"\0\xff")
        key = b"".join((_IS_TEXT, text, _TEXT_END))
    elif value is None or value != value:
        return _MISSING
    else:
        key = _number_key(value)
    return key.translate(_INVERTED) if reverse else key


def _number_key(value: float) -> bytes:
    near = float(value)
    rest = _MIDDLE
    if type(value) is int and not -_EXACT <= value <= _EXACT:
        rest += value - int(near)
    if near > 0:
        return _POSITIVE.pack(_IS_POSITIVE, near, rest)
    if near == 0:  # also -0.0
        return _POSITIVE.pack(_IS_POSITIVE, 0.0, rest)
    magnitude = _NEGATIVE.pack(255 - _IS_NEGATIVE, -near).translate(_INVERTED)
    return magnitude + _REST.pack(rest)
