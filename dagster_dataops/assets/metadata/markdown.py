"""Markdown tables whose cells show what records hold, whatever that is.

Dagster's UI shows Markdown of less than 1,000 characters in its place on the asset page, where a
line has room for some 45 characters and what does not fit is cut off; longer Markdown is behind a
link that opens a wide window. So a table that is narrow enough is kept short, any other made long.
"""

import functools
import re
from collections.abc import Sequence
from typing import Final, TypeAlias

import orjson

INLINE_CHARACTERS: Final = 1000
_WIDTHS: Final = (120, 80, 60, 40)  # characters of a cell, the widest that fits is taken
_ROOM: Final = 45  # characters that the longest words of a row may have, which no browser breaks
_LONGEST_ROW: Final = 120  # characters of a row that is broken into two or three lines
_MARKDOWN: Final = re.compile(r"([\\`*_~\[\]<>&|!#])")  # what would format, link or load something

_Rows: TypeAlias = Sequence[Sequence[str]]


def cell(value: object, width: int = _WIDTHS[0]) -> str:
    """Return a value as the text of one cell: on one line, cut at ``width`` characters, escaped."""
    return _escaped(_cut(plain(value), width))


def _escaped(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)


def plain(value: object) -> str:
    """Return a value as text on one line: a string as it is, all else as JSON."""
    try:
        text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    except TypeError:  # an integer beyond 64 bits, a key that is no string
        text = repr(value)
    text = text.encode(errors="replace").decode()  # no database stores a lone surrogate
    return " ".join(text.replace("\0", "\N{REPLACEMENT CHARACTER}").split())


def table(header: Sequence[str], rows: Sequence[Sequence[object]], note: str = "") -> str:
    """Return a Markdown table: shown in its place if it can be narrow enough, else in a window.

    Args:
        header: Names of the columns.
        rows: Values, as many a row as there are columns.
        note: A remark, below the table.
    """
    return _fitted(tuple(tuple(plain(value) for value in row) for row in [header, *rows]), note)


@functools.lru_cache(maxsize=512)  # a thousand uses of an operator have few tables of options
def _fitted(texts: _Rows, note: str) -> str:
    for width in _WIDTHS:
        cut = [[_cut(text, width) for text in row] for row in texts]
        made = _table(cut, note, rule="---")
        if len(made) < INLINE_CHARACTERS and _fits(cut):
            return made
    cut = [[_cut(text, _WIDTHS[0]) for text in row] for row in texts]
    missing = INLINE_CHARACTERS - len(_table(cut, note, rule="---"))
    return _table(cut, note, rule="---" + "-" * max(0, missing))


def _table(rows: _Rows, note: str, rule: str) -> str:
    """Return a Markdown table of plain texts, the first row its header."""
    lines = [[_escaped(text) for text in row] for row in rows]
    lines.insert(1, [rule, *["---"] * (len(rows[0]) - 1)])
    made = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{made}\n\n_{cell(note, len(note))}_" if note else made


def _fits(rows: _Rows) -> bool:
    """Whether nothing is cut off, and rows stay low, where there is little room."""
    columns = list(zip(*rows, strict=True))
    words = sum(max(_longest_word(text) for text in column) + 2 for column in columns)
    lengths = sum(max(map(len, column)) for column in columns)
    return words <= _ROOM and lengths <= _LONGEST_ROW


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[:width]}..."
