"""Values in conversations that must have a type, and JSON texts in them."""

import json
import math
from typing import Any, Final, TypeVar

from dagster_dataops.errors import UnfitRecordError

_T = TypeVar("_T")

_KINDS: Final = {
    "NoneType": "null",
    "str": "a text",
    "bool": "a truth value",
    "int": "a number",
    "float": "a number",
    "list": "a list",
    "dict": "an object",
}


def kind_of(value: object) -> str:
    """Return what a JSON value is, such as ``a text``."""
    name = type(value).__name__
    return _KINDS.get(name, f"a {name}")


def list_of_dicts(place: str, value: object) -> list[dict[str, Any]]:
    """Return a value that must be a list of dicts; ``place`` is its path, for errors."""
    if not isinstance(value, list):
        raise UnfitRecordError(f"{place!r} holds a {type(value).__name__}, no list of dicts")
    for position, item in enumerate(value):
        if not isinstance(item, dict):
            raise UnfitRecordError(f"{place}[{position}] is a {type(item).__name__}, no dict")
    return value


def text_entry(turn: dict[str, Any], key: str, place: str) -> str:
    """Return the text in a key of a dict.

    Raises:
        UnfitRecordError: It is missing, or no text.
    """
    return _entry(turn, key, place, str)


def dict_entry(turn: dict[str, Any], key: str, place: str) -> dict[str, Any]:
    """Return the dict in a key of a dict.

    Raises:
        UnfitRecordError: It is missing, or no dict.
    """
    return _entry(turn, key, place, dict)


def _entry(turn: dict[str, Any], key: str, place: str, kind: type[_T]) -> _T:
    value = turn.get(key)
    if not isinstance(value, kind):
        value_kind = kind_of(value) if key in turn else "nothing"
        path = f"{place}.{key}" if place else key  # "" is the record
        raise UnfitRecordError(f"{path} holds {value_kind}; it must be {_KINDS[kind.__name__]}")
    return value


def json_list(value: object, place: str) -> object:
    """Return a value that must be a list, or the value of its JSON text; an empty text is null.

    Raises:
        UnfitRecordError: A text is no JSON.
    """
    if not isinstance(value, str):
        return value
    return json_text_value(value, place) if value.strip() else None


def json_text_value(text: str, place: str) -> Any:
    """Return the value of a JSON text, as this package can write it; ``place`` is its path."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_int=_integer,
            parse_float=_finite,
            parse_constant=_refuse,
        )
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise UnfitRecordError(f"{place} is no JSON: {error}") from None
    except UnicodeEncodeError:
        raise UnfitRecordError(f"{place} holds a lone surrogate, which is no text") from None
    except RecursionError:
        raise UnfitRecordError(f"{place} is nested too deeply") from None
    except ValueError as error:
        raise UnfitRecordError(f"{place} {error}") from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    merged = dict(pairs)
    if len(merged) < len(pairs):
        keys = [key for key, _ in pairs]
        double = next(key for key in keys if keys.count(key) > 1)
        msg = f"has the key {double!r} twice; remove one"
        raise ValueError(msg)
    return merged


def _integer(digits: str) -> int:
    number = int(digits) if len(digits) <= 20 else 2**64  # of 64 bits
    if not -(2**63) <= number < 2**64:
        msg = f"holds {digits[:40]}, an integer beyond 64 bits; write it as text"
        raise ValueError(msg)
    return number


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        msg = f"holds {digits[:40]}, a number beyond what JSON readers hold; write it as text"
        raise ValueError(msg)
    return number


def _refuse(name: str) -> float:
    msg = f"holds {name}, which is no JSON"
    raise ValueError(msg)
