"""Excerpts: values of records as short texts."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import orjson

from dagster_dataops.records import text_of

LONG: Final = 600  # characters of a shown value
_COLUMNS: Final = 20  # of a record
_CUT: Final = "…"


def excerpt(value: object, length: int = LONG) -> str:
    """Return a value as text: a string unchanged, any other value as JSON; cut to ``length``."""
    text = text_of_value(value)
    return f"{text[:length]}{_CUT if len(text) > length else ''}"


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
    """Return an excerpt of each of the first columns of a record, and how many more it has."""
    columns = islice(record.items(), _COLUMNS)
    texts = {text_of(name): excerpt(value) for name, value in columns}
    left = len(record) - _COLUMNS
    return texts | {_CUT: f"{left:,} more columns"} if left > 0 else texts
