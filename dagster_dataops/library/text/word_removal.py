"""Operators of group ``text`` that remove words."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.character_sets import SPECIAL_CHARACTERS
from dagster_dataops.library.text.text_cleaning import text
from dagster_dataops.library.text_mapping import TextOperator
from dagster_dataops.operators.options.ranges import AtLeastZero

_SPECIAL: Final = "".join(sorted(SPECIAL_CHARACTERS))
_SUBSTRINGS: Final = ("http", "www", ".com", "href", "//")


class RemoveLongWords(TextOperator, text):
    """Remove words that have too many characters, or too few.

    Words are separated by newlines, tabs and spaces. A word whose length does not fit stays if it
    fits without the special characters at its ends (`SPECIAL_CHARACTERS`: punctuation, digits,
    symbols, emoji). Runs of spaces, and lines without words, go. Reads ``input_key`` (one key or
    several) and writes ``output_key`` (by default, the same keys). As ``remove_long_words_mapper``
    of Data-Juicer.

    Args:
        min_word_length: The smallest length.
        max_word_length: The largest length; ``None`` for no limit.
    """

    renamed_options: ClassVar = {"min_len": "min_word_length", "max_len": "max_word_length"}

    def __init__(
        self,
        *args: Any,
        min_word_length: AtLeastZero = 1,
        max_word_length: AtLeastZero | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._least, self._most = (
            min_word_length,
            float("inf") if max_word_length is None else max_word_length,
        )

    @override
    def changed(self, value: str) -> str:
        return _filtered_words(value, self._fits)

    def _fits(self, word: str) -> bool:
        if self._least <= len(word) <= self._most:
            return True
        return self._least <= len(word.strip(_SPECIAL)) <= self._most


class RemoveWordsContaining(TextOperator, text):
    """Remove words that contain one of ``substrings``, such as parts of links.

    Special characters at the ends of a word are ignored, so ``.com`` alone stays. Words are
    separated by newlines, tabs and spaces; runs of spaces, and lines without words, go. Reads
    ``input_key`` (one key or several) and writes ``output_key`` (by default, the same keys). As
    ``remove_words_with_incorrect_substrings_mapper`` of Data-Juicer.

    Args:
        substrings: The substrings.
    """

    def __init__(self, *args: Any, substrings: Sequence[str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._substrings = _SUBSTRINGS if substrings is None else tuple(substrings)

    @override
    def changed(self, value: str) -> str:
        if any(substring in value for substring in self._substrings):
            return _filtered_words(value, self._is_clean)
        return _filtered_words(value, None)

    def _is_clean(self, word: str) -> bool:
        parts = [substring for substring in self._substrings if substring in word]
        if not parts:
            return True
        stripped = word.strip(_SPECIAL)
        return not any(substring in stripped for substring in parts)


def _filtered_words(value: str, keeps: Callable[[str], bool] | None) -> str:
    """Return the words to keep, joined by single spaces, tabs and newlines."""
    lines = []
    for line in value.split("\n"):
        parts = [
            " ".join(filter(keeps, filter(None, part.split(" ")))) for part in line.split("\t")
        ]
        joined = "\t".join(filter(None, parts))
        if joined:
            lines.append(joined)
    return "\n".join(lines)
