"""The record format: a dict with string keys, written as one JSON object per line.

Bytes are orjson's: compact, UTF-8, in key order. Tuples become lists; UUIDs and enum members become
their text or value. Values that JSON cannot hold are refused with their path and never converted:
NaN and infinities (orjson itself would write ``null``), sets, bytes, dates, dataclasses, keys that
are not strings, integers beyond 64 bits, lone surrogates.

orjson itself reads an integer beyond 64 bits as the nearest float. Such lines are refused, too.
"""

import enum
import math
import re
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol, TypeAlias

import orjson

from dagster_dataops.errors import UnencodableError

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
Record: TypeAlias = dict[str, JsonValue]

SOURCES: Final = "__sources__"  # key of the files that a sample was made of
RESTORE_KEY: Final = "__restore_key__"  # key of what makes a sample again
NOT_TRAINED: Final = -100  # label of a token that is not trained, as all trainers have it

_dumps: Final = orjson.dumps
DUMP_OPTIONS: Final = (
    orjson.OPT_APPEND_NEWLINE | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
)
# Types, besides the usual ``str`` and ``int``, whose values are neither floats nor contain any.
# Checking the types of a record's values is several times as fast as searching its bytes.
NEVER_NAN: Final = frozenset({bool, type(None)})
WITHOUT_FLOATS: Final = frozenset({str, int, *NEVER_NAN})
INTEGER_LIMIT: Final = 2.0**63  # orjson makes a float of this size or more of a larger integer
_MAX_DEPTH = 250  # orjson refuses deeper nesting than 254 levels
_SHOWN_DEPTH: Final = 100
_SHOWN_PARTS: Final = 1_000_000
_SHOWN_TEXT: Final = 2000  # characters of the text of an object without a JSON form
_CUT: Final = "..."
_ODD: Final = (Exception, SystemExit, GeneratorExit)  # exceptions that code of the value may raise


class ValueKeeper(Protocol):
    """Keeps values elsewhere that JSON cannot hold, and returns what a record has in place."""

    @property
    def kinds(self) -> tuple[type, ...]:
        """The types of these values."""
        ...

    def __call__(self, value: object) -> object:
        """Return what the record has in place of a value.

        Raises:
            TypeError: The value is not of these types.
        """
        ...


def encode(record: object, keeper: ValueKeeper | None = None) -> bytes:
    """Return ``record`` as one line with a newline.

    Args:
        record: The record.
        keeper: Keeps values that JSON cannot hold.

    Raises:
        UnencodableError: JSON cannot hold a value in it.
    """
    try:
        line = _dumps(record, keeper, DUMP_OPTIONS)
    except TypeError as error:  # orjson's JSONEncodeError
        cause = error.__cause__
        if cause is not None and not isinstance(cause, TypeError):  # the keeper failed
            error.__cause__ = None  # else the exceptions would be causes of each other
            raise cause from None
        kinds = () if keeper is None else keeper.kinds
        raise _unencodable(record, str(error), kinds) from None
    if type(record) is not dict:
        check_finite(line, record)
        return line
    for value in record.values():
        kind = type(value)
        if kind is not str and kind is not int and kind not in NEVER_NAN:
            check_finite(line, record)
            break
    return line


def compact_copy(data: bytes) -> bytes:
    """Return a copy of a result of `encode` or orjson, to be kept.

    The original takes 4 KB of memory or more, whatever its length; the copy takes its length.
    """
    return bytes(memoryview(data))


def check_finite(line: bytes, record: object) -> None:
    """Refuse a ``null`` in ``line`` that stands for a NaN: orjson writes that silently.

    Raises:
        UnencodableError: ``record`` contains a NaN or an infinity.
    """
    # `in` first tries to convert its operand to an integer, and is half as fast on short lines.
    if line.find(b"null") >= 0 and any(_not_finite(record)):
        for path, reason, value in _faults(record, "the record", 0):
            if isinstance(value, float):
                raise UnencodableError(path, reason)
        raise _unencodable(record, "holds a number that JSON cannot hold")


def _unencodable(record: object, fallback: str, kinds: tuple[type, ...] = ()) -> UnencodableError:
    """Return the error that names where in ``record`` something cannot be written as JSON."""
    for path, reason, value in _faults(record, "the record", 0):
        if not isinstance(value, kinds):
            return UnencodableError(path, reason)
    return UnencodableError("the record", f"cannot be written as JSON: {fallback}")


def _not_finite(value: object) -> Iterator[bool]:
    value = value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, float):
        if not math.isfinite(value):
            yield True
    elif isinstance(value, dict):
        for item in value.values():
            yield from _not_finite(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _not_finite(item)


def _faults(value: object, path: str, depth: int) -> Iterator[tuple[str, str, object]]:
    """Yield (path, fault, value) for every value that JSON cannot hold."""
    value = value.value if isinstance(value, enum.Enum) else value
    if depth > _MAX_DEPTH:
        yield path, f"nests deeper than {_MAX_DEPTH} levels", value
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                yield (
                    path,
                    f"has the key {key!r} of type {type(key).__name__}; keys must be strings",
                    key,
                )
            else:
                yield from _text_faults(key, f"{path} has a key that")
            yield from _faults(item, f"key {key!r}" if depth == 0 else f"{path}.{key}", depth + 1)
    elif isinstance(value, list) or type(value) is tuple:  # orjson refuses named tuples
        for position, item in enumerate(value):
            yield from _faults(item, f"{path}[{position}]", depth + 1)
    else:
        yield from _scalar_faults(value, path)


def _scalar_faults(value: object, path: str) -> Iterator[tuple[str, str, object]]:
    if isinstance(value, str):
        yield from _text_faults(value, path)
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, f"holds {value!r}, which JSON cannot hold; use None", value
    elif isinstance(value, int) and not -(2**63) <= value < 2**64:
        yield path, f"holds {value}, an integer beyond 64 bits; write it as text", value
    elif not isinstance(value, (str, int, uuid.UUID)) and type(value) not in {float, type(None)}:
        kind = type(value).__name__
        yield path, f"holds a {kind}, which JSON cannot hold; {_remedy(value)}", value


def _remedy(value: object) -> str:
    """Return how to make a value one of JSON; ``item()`` is that of scalars of numpy and torch."""
    if callable(getattr(value, "tolist", None)):
        scalar = getattr(value, "ndim", None) == 0
        return "convert it by .item()" if scalar else "convert it by .tolist()"
    return "convert it to text or a list"


def _text_faults(text: str, path: str) -> Iterator[tuple[str, str, object]]:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        yield (
            path,
            f"holds a lone surrogate at character {error.start}, which is not valid text",
            text,
        )


def encode_anything(value: object) -> bytes:
    """Return any value as one line of JSON with a newline, for example for an error file.

    Values that `encode` refuses are written as text: NaN and infinities, large integers, keys that
    are not strings, bytes, sets and other objects (up to 2,000 characters). Lone surrogates are
    escaped. Values below 100 levels (as in a cycle) and after a million parts become ``...``. No
    value makes this function fail.
    """
    try:
        return orjson.dumps(_Shown().of(value, 0), option=orjson.OPT_APPEND_NEWLINE)
    except _ODD:
        return b'"its content cannot be shown"\n'


def text_of(value: object) -> str:
    """Return ``str(value)`` as valid UTF-8 text, even if its own ``__str__`` fails."""
    try:
        return _sound(str(value))
    except _ODD:
        return f"(the text of this {type(value).__name__} cannot be shown)"


class _Shown:
    """Converts one value to JSON, with limits on depth and size."""

    def __init__(self) -> None:
        self._left = _SHOWN_PARTS

    def of(self, value: object, depth: int) -> JsonValue:
        self._left -= 1
        if self._left < 0 or depth > _SHOWN_DEPTH:
            return _CUT
        if isinstance(value, dict):
            items = self._some(value.items())
            return {_shown_key(key): self.of(item, depth + 1) for key, item in items}
        if isinstance(value, (list, tuple)):
            return [self.of(item, depth + 1) for item in self._some(value)]
        return _shown_scalar(value)

    def _some(self, parts: Iterable[Any]) -> Iterator[Any]:
        for part in parts:
            if self._left < 0:
                return
            yield part


def _shown_key(key: object) -> str:
    return _sound(key) if isinstance(key, str) else _shown_object(key)


def _shown_scalar(value: object) -> JsonValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _sound(value)
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    return _shown_object(value)


def _shown_object(value: object) -> str:
    try:
        return _sound(repr(value)[:_SHOWN_TEXT])
    except _ODD:
        return f"({type(value).__name__}, which cannot be shown)"


def _sound(text: str) -> str:
    """Return a text with lone surrogates escaped, as a plain ``str``."""
    return str.encode(text, errors="backslashreplace").decode()


def decode(line: bytes) -> Record:
    """Return the record in ``line``.

    Raises:
        ValueError: The line is not a JSON object, or holds an integer beyond 64 bits; the message
            describes its content.
    """
    value = decode_own(line)
    for item in value.values():
        kind = type(item)
        if kind is not str and kind is not int and kind not in NEVER_NAN:
            if isinstance(item, float) and -INTEGER_LIMIT < item < INTEGER_LIMIT:
                continue
            check_integers(line)
            break
    return value


def decode_own(line: bytes) -> Record:
    """Return the record in a line that this package wrote: it holds no integer beyond 64 bits.

    Raises:
        ValueError: The line is not a JSON object; the message describes its content.
    """
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        msg = f"not JSON: {error}"
        raise ValueError(msg) from None
    if not isinstance(value, dict):
        msg = f"a JSON {type(value).__name__}, not an object"
        raise ValueError(msg)  # noqa: TRY004 - callers handle one error type for an invalid line
    return value


def parse(text: bytes | str) -> Any:
    """Return the value of a JSON text.

    Raises:
        orjson.JSONDecodeError: The text is not JSON.
        ValueError: It holds an integer beyond 64 bits.
    """
    value = orjson.loads(text)
    if not isinstance(value, str):
        check_integers(text if isinstance(text, bytes) else text.encode())
    return value


_SAMPLED: Final = 6
_DIGIT_MARKS: Final = bytes(ord("0") if byte in b"0123456789" else 0 for byte in range(256))
_LONG: Final = b"0" * 19
_TOKENS: Final = rb'(?s)"(?:[^"\\]|\\.)*"|-?[0-9]+(?P<part>\.[0-9]+)?(?P<power>[eE][+-]?[0-9]+)?'
_SHOWN_DIGITS: Final = 40


def check_integers(text: bytes) -> None:
    """Refuse an integer beyond 64 bits in JSON texts, one on each line.

    orjson makes a float of it. So this is needed only for texts whose value is, or contains, a
    float. Any 19 digits in a row are at three places in a row of every sixth byte: in most texts
    there are none.

    Raises:
        ValueError: There is one.
    """
    if text[::_SAMPLED].translate(_DIGIT_MARKS).find(b"000") < 0:
        return
    digits, place = text.translate(_DIGIT_MARKS), 0
    while (place := digits.find(_LONG, place)) >= 0:
        start = text.rfind(b"\n", 0, place) + 1
        place = text.find(b"\n", place)
        place = len(text) if place < 0 else place
        _check_line(text[start:place])


def _check_line(line: bytes) -> None:
    for token in re.finditer(_TOKENS, line):
        digits = token[0]
        is_integer = digits[:1] != b'"' and token["part"] is None and token["power"] is None
        if is_integer and _is_beyond(digits):
            shown = digits[:_SHOWN_DIGITS].decode() + ("…" if len(digits) > _SHOWN_DIGITS else "")
            msg = f"holds {shown}, an integer beyond 64 bits; write it as text"
            raise ValueError(msg)


def _is_beyond(digits: bytes) -> bool:
    sign, length = (b"-", 19) if digits[:1] == b"-" else (b"", 20)
    largest = b"9223372036854775808" if sign else b"18446744073709551615"
    size = digits.removeprefix(sign)
    return (len(size), size) > (length, largest)
