"""`AnalyzedText`: a text, and results of functions of it, each computed on first use."""

import threading
from collections.abc import Callable
from functools import wraps
from typing import Final, TypeVar, TypeVarTuple, cast

T = TypeVar("T")
A = TypeVarTuple("A")
_LONGEST_KEPT: Final = 1_000_000  # characters; the analysis of a text takes many times its size


class AnalyzedText:
    """A text with the results of functions of it.

    A result depends only on the text, the function and its arguments, so it is never out of date.
    """

    __slots__ = ("_results", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._results: dict[object, object] = {}

    def get(self, function: "Callable[[AnalyzedText, *A], T]", *arguments: *A) -> T:
        """Return ``function(self, *arguments)``, computed once; do not change it.

        The function must be pure, and the arguments hashable.
        """
        key = (function, arguments)
        try:
            return cast("T", self._results[key])
        except KeyError:
            result = self._results[key] = function(self, *arguments)
            return result

    def split(self, function: Callable[[str], list[str]]) -> list[str]:
        """Return ``function(text)``, computed once: words, sentences or lines. Do not change it."""
        try:
            return cast("list[str]", self._results[function])
        except KeyError:
            parts = self._results[function] = function(self.text)
            return parts


def shared(function: Callable[[str], list[str]]) -> Callable[[AnalyzedText], list[str]]:
    """Make a function of a text one of an `AnalyzedText`, which computes it once."""

    @wraps(function)
    def split(text: AnalyzedText) -> list[str]:
        return text.split(function)

    return split


class _Latest(threading.local):
    analyzed = AnalyzedText("")


_latest: Final = _Latest()


def analyzed(text: str) -> AnalyzedText:
    """Return the analysis of a text; the same object again while its thread asks for equal texts.

    So operators that see a text one after the other, as in a chain, share its analysis. Each thread
    holds one text of up to 1,000,000 characters; longer ones are not shared.
    """
    latest = _latest.analyzed
    if latest.text == text:
        return latest
    fresh = AnalyzedText(text)
    if len(text) <= _LONGEST_KEPT:
        _latest.analyzed = fresh
    return fresh
