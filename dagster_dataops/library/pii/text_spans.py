"""Replace spans of a text."""

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import TypeAlias

Spans: TypeAlias = Iterator[tuple[int, int]]
Finder: TypeAlias = Callable[[str], Spans]


def replaced(text: str, spans: Spans, replacements: Sequence[str]) -> str:
    """Return ``text`` with its spans replaced by the replacements in turn, from the first one.

    Args:
        text: The text.
        spans: Start and end of each span, in order, without overlaps.
        replacements: At least one.
    """
    pieces: list[str] = []
    place = 0
    for (start, end), new in zip(spans, cycle(replacements), strict=False):
        pieces += (text[place:start], new)
        place = end
    if not pieces:
        return text
    return "".join([*pieces, text[place:]])
