"""Dispositions: the outcomes of input records.

Usually a record becomes one result line. Anything else is written down as a JSON object with some
of these keys:

* ``emitted``: Number of result lines, if it is not 1.
* ``dropped``: Reasons for which the record was dropped; empty text without one. In a chain, for
  each record dropped in a part, ``part: reason`` or ``part``; an object with the number of records
  for each reason if one is there twice.
* ``outputs``: Index of the named output of each result line.
* ``entered``: Number of records that entered each part of a chain, up to the last part reached.
* ``failed``: Index of the part of a chain that failed.
* ``merged``: True for a record of a batch whose result lines are with the first record of it.
"""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias

import orjson

from dagster_dataops.records import compact_copy

Disposition: TypeAlias = bytes  # its JSON; equal dispositions have equal bytes

USUAL: Final[Disposition] = b"{}"


def disposition(**fields: Any) -> Disposition:
    """Return the disposition with these fields."""
    return compact_copy(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS))


@cache
def emitting(lines: int) -> Disposition:
    """Return the disposition of a record with ``lines`` result lines."""
    if lines == 1:
        return USUAL
    return disposition(emitted=lines) if lines else dropped_for("")


@cache
def dropped_for(reason: str) -> Disposition:
    """Return the disposition of a record that was dropped; ``reason`` may be empty."""
    return disposition(emitted=0, dropped=[reason])


MERGED: Final = disposition(emitted=0, merged=True)


def reasons_in(fields: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield each reason of a disposition's fields, with the number of records dropped for it."""
    dropped = fields.get("dropped", ())
    if isinstance(dropped, Mapping):
        yield from dropped.items()
    else:
        yield from ((reason, 1) for reason in dropped)


@lru_cache(1024)
def sending(*outputs: int) -> Disposition:
    """Return the disposition of a record with a result line in each of these named outputs."""
    if not outputs:
        return dropped_for("")
    return disposition(outputs=outputs, **({} if len(outputs) == 1 else {"emitted": len(outputs)}))
