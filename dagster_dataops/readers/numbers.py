"""`parse_numbers`: parse a line of delimited decimal numbers strictly."""

import math
import re
from typing import Final

from dagster_dataops.foundation.quantities import counted

# Each digit matches in one way only, so the time is linear in the length.
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def parse_numbers(line: str, columns: int, delimiter: str = ",") -> list[float]:
    """Return the numbers of a line; white space around them is ignored.

    Args:
        line: The line, such as ``1.01,2.02``.
        columns: The required number of columns.
        delimiter: The text between columns.

    Raises:
        ValueError: The line is blank, has another number of columns, or has a column that is not
            a finite decimal number, such as ``1.5abc``, ``0x10`` or ``nan``.
    """
    if not line.strip():
        raise ValueError("the line is blank; skip_blank_lines=True skips such lines")
    parts = [part.strip() for part in line.split(delimiter)]
    if len(parts) != columns:
        raise ValueError(f"it has {counted(len(parts), 'columns')}, not {columns}: {line[:80]!r}")
    return [_number(part, place) for place, part in enumerate(parts, 1)]


def _number(text: str, place: int) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"column {place} is {text[:80]!r}, which is not a decimal number")
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"column {place} is {text[:80]!r}, which is too large for a number")
    return number
