"""Markdown tables whose cells show what records hold, whatever that is.

Dagster's UI shows Markdown of up to 1,000 characters in its place on the asset page, longer one
behind a link that opens a wide window. So a table is made narrow if that fits it in, else wide.
"""

import re
from collections.abc import Sequence
from typing import Final

import orjson

INLINE_CHARACTERS: Final = 1000
_WIDTHS: Final = (120, 80, 60, 48, 36, 28)  # characters of a cell, the first that fits is taken
_MARKDOWN: Final = re.compile(r"([\\`*_~\[\]<>&|!#])")  # what would format, link or load something


def cell(value: object, width: int = _WIDTHS[0]) -> str:
    """Return a value as the text of one cell: on one line, cut at ``width`` characters, escaped."""
    return _MARKDOWN.sub(r"\\\1", _cut(plain(value), width))


def plain(value: object) -> str:
    """Return a value as text on one line: a string as it is, all else as JSON."""
    text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    text = text.encode(errors="replace").decode()  # a lone surrogate would break the database
    return " ".join(text.replace("\0", "\N{REPLACEMENT CHARACTER}").split())


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[:width]}..."


def table(header: Sequence[str], rows: Sequence[Sequence[object]], note: str = "") -> str:
    """Return a Markdown table, its cells as wide as they can be for it to be shown in its place.

    Args:
        header: Names of the columns.
        rows: Values, as many a row as there are columns.
        note: A remark in Markdown, below the table.
    """
    made = ""
    for width in _WIDTHS:
        made = _table(header, rows, note, width)
        if len(made) < INLINE_CHARACTERS:
            return made
    return _table(header, rows, note, _WIDTHS[0])


def _table(header: Sequence[str], rows: Sequence[Sequence[object]], note: str, width: int) -> str:
    lines = [[cell(name, width) for name in header], ["---"] * len(header)]
    lines += [[cell(value, width) for value in row] for row in rows]
    made = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{made}\n\n_{note}_" if note else made
