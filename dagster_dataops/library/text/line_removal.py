"""Operators of group ``text`` that remove lines and paragraphs."""

from itertools import repeat
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeAlias

from annotated_types import Interval

from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.character_sets import PUNCTUATION
from dagster_dataops.library.analysis.licence_notices import licence_notices
from dagster_dataops.library.analysis.signals.line_signals import POLICY
from dagster_dataops.library.analysis.text_spans import replaced
from dagster_dataops.library.text.text_cleaning import text
from dagster_dataops.library.text_mapping import TextOperator

_Columns: TypeAlias = Annotated[int, Interval(ge=2, le=20)]

_STARTS: Final = PUNCTUATION | {" "}
_SYMBOLS: Final = "".join(sorted(_STARTS))
_PLACEHOLDER: Final = "lorem ipsum"


class RemoveSymbolLines(TextOperator, text):
    """Remove lines of punctuation, such as separators.

    A line goes if it has characters other than white space, and all of them are punctuation or
    control characters; a run of such lines leaves one line ``replacement``. Blank lines stay. Lines
    are joined by a newline, so a newline at the end goes. Reads ``input_key`` (one key or several)
    and writes ``output_key`` (by default, the same keys). As ``SymbolLinesFormatter`` of datatrove.

    Args:
        replacement: The line that replaces a run; empty for none.
    """

    renamed_options: ClassVar = {"replace": "replacement"}

    def __init__(self, *args: Any, replacement: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._replace = replacement

    @override
    def changed(self, value: str) -> str:
        kept = []
        removing = False
        for line in value.splitlines():
            # The first test is cheap, and most lines of text pass it.
            symbols = line[:1] in _STARTS and not line.strip(_SYMBOLS) and bool(line.strip())
            if not symbols:
                kept.append(line)
            elif self._replace and not removing:
                kept.append(self._replace)
            removing = symbols
        return "\n".join(kept)


class RemoveBoilerplate(TextOperator, text):
    """Remove paragraphs with notices about cookies, privacy and terms of use.

    Paragraphs are separated by blank lines. With ``top_or_bottom_only``, the paragraphs with a
    notice go if they are one block at the top or at the bottom of the text; otherwise the text
    stays. Without it, a text with a notice becomes empty, and so does a text with "lorem ipsum".
    Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same keys).

    As ``BoilerPlateStringModifier`` of NeMo Curator. Its long notices are recognized by their
    beginning, length and end.

    Args:
        top_or_bottom_only: Whether notices are removed from the top or bottom alone.
    """

    def __init__(self, *args: Any, top_or_bottom_only: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._only_at_ends = top_or_bottom_only

    @override
    def changed(self, value: str) -> str:
        if _PLACEHOLDER in value.lower():
            return ""
        paragraphs = value.split("\n\n")
        numbers = [
            number
            for number, paragraph in enumerate(paragraphs)
            if POLICY.search(paragraph.lower())
        ]
        if not numbers:
            return value
        if not self._only_at_ends:
            return ""
        first, last = numbers[0], numbers[-1]
        whole = len(numbers) == len(paragraphs)
        at_end = first == 0 or last == len(paragraphs) - 1
        if whole or not at_end or last - first != len(numbers) - 1:
            return value
        return "\n\n".join(paragraphs[:first] + paragraphs[last + 1 :])


class RemoveCopyrightHeader(TextOperator, text):
    """Remove the notices about copyright and licence from the beginning of source code.

    Of the comments before the code, those go that speak of a copyright or a licence: ``Copyright``,
    ``SPDX-License-Identifier``, ``Licensed under``, ``All rights reserved``, and the like in other
    languages. All else stays: other comments, titles, directives such as ``#include``, and lines
    that a program reads, such as ``#!/bin/sh`` or ``# -*- coding: utf-8 -*-``. A text in three
    quotes, as the documentation of a module, goes only if it begins with a notice. The line end
    after a comment such as ``/* */`` stays.

    Comments of lines begin with ``#``, ``//``, ``--``, ``;``, ``%``, ``!``, ``rem``, ``dnl`` and
    the like; others are between ``/*`` and ``*/``, ``<!--`` and ``-->``, ``(*`` and ``*)``, ``{-``
    and ``-}``, ``#|`` and ``|#`` and the like. Reads ``input_key`` (one key or several) and writes
    ``output_key`` (by default, the same keys).

    ``clean_copyright_mapper`` of Data-Juicer also removes other lines that begin with ``#``, and
    every comment if it finds no ``/*``. As there, a text of nothing but line ends becomes empty.
    """

    @override
    def changed(self, value: str) -> str:
        if not value.strip("\n"):
            return ""
        return replaced(value, licence_notices(value), repeat(""))


class RemoveTableText(TextOperator, text):
    r"""Remove rows of tables whose columns are separated by spaces, tabs or ``|``.

    Two or more successive lines with the same number of columns are rows, also with blank lines
    between them. The first line of a text is never one, nor is a last line without a newline. Each
    number of columns from ``min_columns`` to ``max_columns`` is looked for in turn. Reads
    ``input_key`` (one key or several) and writes ``output_key`` (by default, the same keys).

    As ``remove_table_text_mapper`` of Data-Juicer, but by lines, in linear time. Successive
    sentences with the same number of words are rows, too: use it on tables alone.

    Args:
        min_columns: The smallest number of columns, 2 to 20.
        max_columns: The largest number of columns, 2 to 20.
    """

    renamed_options: ClassVar = {"min_col": "min_columns", "max_col": "max_columns"}

    def __init__(
        self, *args: Any, min_columns: _Columns = 2, max_columns: _Columns = 20, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._columns = range(min_columns, max_columns + 1)

    @override
    def changed(self, value: str) -> str:
        if value.count("\n") < 3:
            return value
        rows = [_row(line) for line in value.split("\n")]
        for columns in self._columns:
            if sum(row.least <= columns <= row.most for row in rows) >= 2:
                rows = _without_runs(rows, columns)
        return "\n".join(row.line for row in rows)


class _Row(NamedTuple):
    """A line, and how many columns it can have as a row of a table; none if ``most`` is 0."""

    line: str
    least: int
    most: int


def _row(line: str) -> _Row:
    cells = line.replace("\t", " ").split(" ")
    if cells != line.split():  # empty cells, or other white space
        return _Row(line, 0, 0)
    return _Row(line, len(cells), sum(map(_most_columns, cells)))


def _most_columns(cell: str) -> int:
    """Return into how many parts that are not empty a cell can be cut at ``|``."""
    if "|" not in cell:
        return 1
    parts, start = 1, 0
    while (bar := cell.find("|", start + 1)) >= 0 and bar < len(cell) - 1:
        parts, start = parts + 1, bar + 1
    return parts


def _without_runs(rows: list[_Row], columns: int) -> list[_Row]:
    """Return the rows without runs of two or more with this number of columns."""
    kept = rows[:1]
    place, last = 1, len(rows) - 1
    while place < last:
        end, count = place, 0
        while end < last and rows[end].least <= columns <= rows[end].most:
            end, count = _next_line(rows, end + 1), count + 1
        if count < 2:
            end = place + 1
            kept.append(rows[place])
        place = end
    return kept + rows[place:]


def _next_line(rows: list[_Row], place: int) -> int:
    """Return the place of the next line that is not empty; the last place if there is none."""
    while place < len(rows) - 1 and not rows[place].line:
        place += 1
    return place
