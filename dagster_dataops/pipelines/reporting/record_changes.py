"""Changes of a record: the columns that differ before and after a node, word by word."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dagster_dataops.pipelines.reporting.excerpts import excerpt, text_of_value
from dagster_dataops.pipelines.reporting.word_changes import TextPiece, changed_words
from dagster_dataops.records import text_of

_LONG: Final = 1000  # characters of a column that only one side has
_MOST: Final = 40  # columns


@dataclass(frozen=True)
class ValueChange:
    """A column of a record before and after a node.

    Attributes:
        column: The column.
        before: Its text before, with the words that went marked; ``None`` if it is new.
        after: Its text after, with new words marked; ``None`` if it is gone.
    """

    column: str
    before: Sequence[TextPiece] | None
    after: Sequence[TextPiece] | None


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[ValueChange]:
    """Return the columns that differ between two records, with the words that differ marked."""
    differing: list[ValueChange] = []
    for name in dict.fromkeys([*before, *after]):
        if len(differing) >= _MOST:
            break
        if name in before and name in after and before[name] == after[name]:
            continue
        if name in before and name in after:
            texts = text_of_value(before[name]), text_of_value(after[name])
            differing.append(ValueChange(text_of(name), *changed_words(*texts)))
            continue
        record, mark = (before, "cut") if name in before else (after, "add")
        piece = [TextPiece(excerpt(record[name], _LONG), mark)]
        sides = (piece, None) if name in before else (None, piece)
        differing.append(ValueChange(text_of(name), *sides))
    return differing


def side_by_side(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[ValueChange]:
    """Return all columns of two records, with the words that differ marked; long texts are cut."""
    columns = []
    for name in list(dict.fromkeys([*first, *second]))[:_MOST]:
        texts = [
            excerpt(record[name], _LONG) if name in record else None for record in (first, second)
        ]
        if texts[0] is None or texts[1] is None:
            sides = [None if text is None else [TextPiece(text)] for text in texts]
        else:
            sides = list(changed_words(texts[0], texts[1], around=False))
        columns.append(ValueChange(text_of(name), sides[0], sides[1]))
    return columns
