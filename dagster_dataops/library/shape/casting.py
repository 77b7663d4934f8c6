"""``shape.Cast``: change the types of values without loss."""

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.library.shape.columns import shape
from dagster_dataops.records import Record

_INTEGER: Final = re.compile(r"\s*[+-]?[0-9]{1,20}\s*", re.ASCII)
_LEAST, _MOST = -(2**63), 2**64 - 1  # the integers of JSON lines
_EXACT: Final = 2**53  # the integers that a float holds exactly
_TRUE: Final = frozenset({"true", "yes", "1"})
_FALSE: Final = frozenset({"false", "no", "0"})
_SHOWN: Final = 60


class Cast(shape):
    """Change the types of columns, such as ``types={"year": "int", "meta.score": "float"}``.

    The types are ``"int"``, ``"float"``, ``"str"``, ``"bool"``, ``"list"``, ``"json"`` (the value
    as JSON text) and ``"parsed"`` (the value of a JSON text). Reads and writes the columns in
    ``types``. A column may be a selector. A missing
    column and ``null`` stay as they are.

    A value that would lose something is an error of the record: ``"1.5"`` or ``1.5`` as int, an
    integer as float that no float equals, a text that is no number, ``"maybe"`` as bool (``true``,
    ``yes``, ``1``, ``false``, ``no`` and ``0`` are known, in any case). ``1.0`` is the int 1. With
    ``on_error="null"`` such a value becomes ``null``. Numbers, texts and booleans become text as
    JSON writes them; a value that is no list becomes a list of one element.

    Args:
        types: Types by column.
        on_error: ``raise``, or ``null`` to write ``null``.
    """

    def __init__(self, types: Mapping[str, str], on_error: str = "raise", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_choice("on_error", on_error, ("raise", "null"))
        for key, kind in types.items():
            check_choice(f"the type of {key!r}", kind, _CASTS)
        self._columns = [(FieldKey(key), kind) for key, kind in types.items()]
        self._null = on_error == "null"

    def forward(self, record: Record) -> Record:
        for column, kind in self._columns:
            if column.present(record):
                record = column.mapped(partial(self._cast, column.name, kind), record)
        return record

    def _cast(self, key: str, kind: str, value: Any) -> Any:
        if value is None:
            return None
        try:
            return _CASTS[kind](value)
        except (ValueError, TypeError, OverflowError, RecursionError):
            if self._null:
                return None
            text = repr(value)
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            msg = f"key {key!r}: {shown} cannot become {kind} without loss; use on_error='null'"
            raise UnfitRecordError(msg) from None


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value):
            raise ValueError
        value = int(value)
    elif isinstance(value, float):
        if not value.is_integer():
            raise ValueError
        value = int(value)
    elif not isinstance(value, int):
        raise TypeError
    if not _LEAST <= value <= _MOST:
        raise OverflowError
    return int(value)


def _to_float(value: Any) -> float:
    if isinstance(value, (list, dict)):
        raise TypeError
    number = float(value.replace("_", "x") if isinstance(value, str) else value)
    lost = isinstance(value, int) and abs(value) > _EXACT and int(number) != value
    if not math.isfinite(number) or lost:
        raise ValueError
    return number


def _to_str(value: Any) -> str:
    if isinstance(value, (list, dict)):
        raise TypeError
    return value if isinstance(value, str) else _to_json(value)


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
    elif isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    raise ValueError


def _to_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return json.loads(value, parse_constant=_refuse, parse_float=_to_float, parse_int=_to_int)


def _refuse(name: str) -> None:
    raise ValueError(name)


_CASTS: Final[dict[str, Callable[[Any], Any]]] = {
    "int": _to_int,
    "float": _to_float,
    "str": _to_str,
    "bool": _to_bool,
    "list": _to_list,
    "json": _to_json,
    "parsed": _parsed,
}
