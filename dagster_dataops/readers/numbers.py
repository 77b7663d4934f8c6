"""parse_numbers: the numbers of a line of text, and nothing that only looks like them."""

import math
import re
from typing import Final

# No digit can be matched in two ways: the time grows with the length, not with its square.
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def parse_numbers(line: str, columns: int, delimiter: str = ",") -> list[float]:
    """Return the numbers of a line; white space around them does not count.

    Args:
        line: Such as ``1.01,2.02``.
        columns: How many there must be.
        delimiter: What stands between them.

    Raises:
        ValueError: The line is blank, has fewer or more columns, or one is no finite decimal
            number, such as ``1.5abc``, ``0x10`` or ``nan``.
    """
    if not line.strip():
        raise ValueError("the line is blank; skip_blank_lines=True passes over such lines")
    parts = [part.strip() for part in line.split(delimiter)]
    if len(parts) != columns:
        raise ValueError(f"it has {len(parts)} columns, not {columns}: {line[:80]!r}")
    return [_number(part, place) for place, part in enumerate(parts, 1)]


def _number(text: str, place: int) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"column {place} is {text[:80]!r}, which is no decimal number")
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"column {place} is {text[:80]!r}, which is too large for a number")
    return number
