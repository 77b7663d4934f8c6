"""Convert the texts of cells to values."""

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import StreamArgumentError
from dagster_dataops.records import parse

Convert: TypeAlias = Callable[[str], Any]
CellType: TypeAlias = type | str
"""``int``, ``float``, ``str``, ``bool`` or ``"json"``; types can also be given by name."""

_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**64 - 1  # the range of integers in JSON


def _integer(text: str) -> int:
    if "_" in text:  # Python accepts underscores in numbers
        raise ValueError(text)
    number = int(text)
    if not _MIN_INTEGER <= number <= _MAX_INTEGER:
        msg = "it has more than 64 bits"
        raise ValueError(msg)
    return number


def _number(text: str) -> float:
    number = float(text)
    if "_" in text or not math.isfinite(number):
        msg = "JSON holds finite numbers; missing=... makes it null"
        raise ValueError(msg)
    return number


def _boolean(text: str) -> bool:
    return _BOOLEANS[text.strip().lower()]


_CONVERTS: Final[dict[str, Convert]] = {
    "bool": _boolean,
    "float": _number,
    "int": _integer,
    "json": parse,
    "str": str,
}


def type_names(types: Mapping[str, CellType] | CellType | None) -> dict[str, str] | str:
    """Return the type names of columns, or the one name for all columns.

    Raises:
        StreamArgumentError: A type is not supported.
    """
    if types is None:
        return {}
    if isinstance(types, Mapping):
        return {column: _type_name(column, cell_type) for column, cell_type in types.items()}
    return _type_name("every column", types)


def _type_name(column: str, cell_type: CellType) -> str:
    name = cell_type.__name__ if isinstance(cell_type, type) else cell_type
    if name not in _CONVERTS:
        reason = f"types: {column} is {cell_type!r}; it is one of int, float, str, bool, 'json'"
        raise StreamArgumentError("read_delimited", reason)
    return name


def convert(name: str, missing: Collection[str]) -> Convert | None:
    """Return the conversion for the texts of a column; ``None`` if they need none.

    Args:
        name: The name of the type. The empty text becomes ``None`` for all types but ``str``.
        missing: The texts that become ``None``.
    """
    if name == "str":
        return _texts(missing) if missing else None
    missing, converter = frozenset({"", *missing}), _CONVERTS[name]

    def value(text: str) -> Any:
        if text in missing:
            return None
        try:
            return converter(text)
        except (ValueError, KeyError) as error:
            shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
            detail = f": {error}" if isinstance(error, ValueError) and name != "int" else ""
            msg = f"{shown!r} is not a valid {name}{detail}"
            raise ValueError(msg) from error

    return value


_MAX_SHOWN: Final = 80  # characters of a cell in messages


def _texts(missing: Collection[str]) -> Convert:
    missing_texts = frozenset(missing)
    return lambda text: None if text in missing_texts else text
