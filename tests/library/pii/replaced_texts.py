"""Texts in which parts are replaced by a mark."""

from collections.abc import Iterable


def marked(text: str, parts: Iterable[str], mark: str = "_") -> str:
    """Return a text with a mark in place of each of the parts, which are in its order."""
    begin, rest = "", text
    for part in parts:
        before, found, rest = rest.partition(part)
        assert found, f"{part!r} is not in {text!r}"
        begin += before + mark
    return begin + rest
