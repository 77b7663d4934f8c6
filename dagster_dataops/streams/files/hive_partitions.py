"""Columns in the names of folders, such as ``lang=de/year=2024``, as Hive, Spark and DuckDB write.

A column whose values are decimal integers in all folders holds numbers, otherwise texts. The name
that Hive writes for null is null. Names and values are percent-decoded.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias
from urllib.parse import unquote

Partition: TypeAlias = Mapping[str, str | int | None]

_COLUMN: Final = re.compile(r"([^=]+)=(.*)", re.DOTALL)
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")


def partitions(folders: Iterable[str]) -> list[Partition]:
    """Return the columns in the names of each folder.

    Args:
        folders: Paths relative to the top of the data set, with slashes.
    """
    found = [_texts(folder) for folder in folders]
    names = {name for one in found for name in one}
    numbers = {name for name in names if all(_is_number(one.get(name)) for one in found)}
    return [
        {name: _value(text, is_number=name in numbers) for name, text in one.items()}
        for one in found
    ]


def _texts(folder: str) -> dict[str, str]:
    matches = map(_COLUMN.fullmatch, folder.split("/"))
    return {unquote(one[1]): unquote(one[2]) for one in matches if one is not None}


def _is_number(text: str | None) -> bool:
    return text is None or text == _NULL or _INTEGER.fullmatch(text) is not None


def _value(text: str, *, is_number: bool) -> str | int | None:
    if text == _NULL:
        return None
    return int(text) if is_number else text
