"""`CharacterCounter`: count the characters of a text that belong to a set."""

import re
from collections.abc import Callable, Collection
from typing import Final

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText

_ASCII: Final = re.compile("[\x00-\x7f]+")


class CharacterCounter:
    """Counts the characters for which a pure function holds, ASCII at the speed of memory."""

    def __init__(self, test: Callable[[str], bool]) -> None:
        self._test = test
        self._others = bytes(code for code in range(128) if not test(chr(code)))

    @classmethod
    def of(cls, members: Collection[str]) -> "CharacterCounter":
        """Return the counter of the characters of a set."""
        return cls(frozenset(members).__contains__)

    def count(self, text: AnalyzedText) -> int:
        """Return the number of such characters in a text."""
        ascii_only, others = text.get(_divided)
        return len(ascii_only.translate(None, self._others)) + sum(map(self._test, others))


def _divided(text: AnalyzedText) -> tuple[bytes, str]:
    """Return the ASCII characters of a text, and the others."""
    if text.text.isascii():
        return text.text.encode("ascii"), ""
    return text.text.encode("ascii", "ignore"), _ASCII.sub("", text.text)


def ratio(number: float, total: float) -> float:
    """Return ``number / total``; 0.0 if the total is 0."""
    return number / total if total else 0.0
