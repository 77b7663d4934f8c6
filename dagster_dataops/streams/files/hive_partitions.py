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
    texts = [_texts(folder) for folder in folders]
    names = {name for columns in texts for name in columns}
    numbers = {name for name in names if all(_is_number(columns.get(name)) for columns in texts)}
    return [
        {name: _value(text, is_number=name in numbers) for name, text in columns.items()}
        for columns in texts
    ]


def _texts(folder: str) -> dict[str, str]:
    matches = map(_COLUMN.fullmatch, folder.split("/"))
    return {unquote(match[1]): unquote(match[2]) for match in matches if match is not None}


def _is_number(text: str | None) -> bool:
    return text is None or text == _NULL or _INTEGER.fullmatch(text) is not None


def _value(text: str, *, is_number: bool) -> str | int | None:
    if text == _NULL:
        return None
    return int(text) if is_number else text
