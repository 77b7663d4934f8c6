"""Excerpts: values of records as short texts."""

from collections.abc import Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, Final

import orjson

from dagster_dataops.records import text_of

LONG: Final = 600  # characters of a shown value
_BEFORE: Final = 120  # characters shown before the first difference
_COLUMNS: Final = 20  # of a record
_CUT: Final = "…"


def excerpt(value: object, length: int = LONG, start: int = 0) -> str:
    """Return a value as text: a string unchanged, any other value as JSON; cut to ``length``.

    Args:
        value: The value.
        length: Number of characters.
        start: The first character.
    """
    text, end = text_of_value(value), start + length
    return f"{_CUT if start else ''}{text[start:end]}{_CUT if len(text) > end else ''}"


def text_of_value(value: object) -> str:
    """Return a value as text: a string unchanged, any other value as JSON."""
    if isinstance(value, str):
        return text_of(value)
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer beyond 64 bits, for example
        return text_of(value)


def shown_line(text: bytes) -> dict[str, Any]:
    """Return the record of a line; if it is no JSON object, its text under the key ``line``."""
    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"line": text.decode(errors="replace")}
    return record if isinstance(record, dict) else {"line": text.decode(errors="replace")}


def excerpts(record: Mapping[str, Any]) -> dict[str, str]:
    """Return an excerpt of each of the first columns of a record."""
    columns = islice(record.items(), _COLUMNS)
    return {text_of(name): excerpt(value) for name, value in columns}


def _same(first: str, second: str) -> int:
    """Return the number of equal characters at the start of both texts."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return excerpts of the columns that differ, in both records, around the first difference."""
    names = [
        name
        for name in dict.fromkeys([*after, *before])
        if name not in before or name not in after or before[name] != after[name]
    ]
    shown: Sequence[dict[str, str]] = ({}, {})
    for name in names:
        texts = [text_of_value(record[name]) for record in (before, after) if name in record]
        same = _same(*texts) if len(texts) == 2 else 0
        start = max(0, same - _BEFORE) if max(map(len, texts)) > LONG else 0
        for record, found in zip((before, after), shown, strict=True):
            if name in record:
                found[text_of(name)] = excerpt(record[name], start=start)
    return shown[0], shown[1]
