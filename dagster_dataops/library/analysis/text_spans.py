"""Replace spans of a text."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

Spans: TypeAlias = Iterator[tuple[int, int]]
Finder: TypeAlias = Callable[[str], Spans]


def replaced(text: str, spans: Iterable[tuple[int, int]], replacements: Iterable[str]) -> str:
    """Return ``text`` with its spans replaced.

    The spans are in order, without overlaps. There are at least as many replacements.
    """
    pieces: list[str] = []
    place = 0
    for (start, end), new in zip(spans, replacements, strict=False):
        pieces += (text[place:start], new)
        place = end
    if not pieces:
        return text
    return "".join([*pieces, text[place:]])
