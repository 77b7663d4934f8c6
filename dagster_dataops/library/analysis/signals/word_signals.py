"""Signals of texts that are about words: pure functions of an `AnalyzedText` and a splitter."""

import re
import unicodedata
from typing import Final, NamedTuple

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText, shared
from dagster_dataops.library.analysis.character_counts import ratio
from dagster_dataops.library.analysis.character_sets import (
    PUNCTUATION,
    SPECIAL_CHARACTERS,
    characters,
)
from dagster_dataops.library.analysis.word_splitting import Splitter

STOP_WORDS: Final = frozenset({"the", "be", "to", "of", "and", "that", "have", "with"})
"""The stop words of the Gopher rules."""

_MARKS: Final = "".join(sorted(PUNCTUATION))
_SPECIAL: Final = "".join(sorted(SPECIAL_CHARACTERS))
_ASCII_SPECIAL: Final = "".join(filter(str.isascii, _SPECIAL))
_SEPARATED: Final = bytes.maketrans(b"\n\t", b"  ")
_IGNORED: Final = _ASCII_SPECIAL.encode("ascii").translate(None, b" \n\t")
_ELLIPSIS_WORDS: Final = frozenset({"...", "[...]", "…", "(...)", "[…]", "-»", "read more"})
_ENCLOSED: Final = characters("24b6-24e9 1f130-1f149 1f150-1f169 1f170-1f189")
_HASHES: Final = re.compile("#+")


def num_words(text: AnalyzedText, split: Splitter) -> int:
    """Return the number of words."""
    return len(text.split(split))


class _Kinds(NamedTuple):
    """The words with a character that is no letter (mixed), and the marks: punctuation alone."""

    mixed: list[str]
    marks: list[str]


def _kinds(text: AnalyzedText, split: Splitter) -> _Kinds:
    mixed = [word for word in text.split(split) if not word.isalpha()]
    return _Kinds(mixed, [word for word in mixed if not word.strip(_MARKS)])


def num_content_words(text: AnalyzedText, split: Splitter) -> int:
    """Return the number of words that are not only punctuation."""
    return len(text.split(split)) - len(text.get(_kinds, split).marks)


def avg_content_word_length(text: AnalyzedText, split: Splitter) -> float:
    """Return the mean length of the words that are not only punctuation."""
    marks = text.get(_kinds, split).marks
    words = text.split(split)
    return ratio(sum(map(len, words)) - sum(map(len, marks)), len(words) - len(marks))


def hash_word_ratio(text: AnalyzedText, split: Splitter) -> float:
    """Return the number of ``#`` per word."""
    return ratio(text.text.count("#"), len(text.split(split)))


def ellipsis_word_ratio(text: AnalyzedText, split: Splitter) -> float:
    """Return the number of ``...`` and ``…`` per word."""
    number = text.text.count("...") + text.text.count("…")
    return ratio(number, len(text.split(split)))


def alpha_word_ratio(text: AnalyzedText, split: Splitter) -> float:
    """Return the share of words with a letter."""
    mixed = text.get(_kinds, split).mixed
    without = sum(not any(map(str.isalpha, word)) for word in mixed)
    words = text.split(split)
    return ratio(len(words) - without, len(words))


def alphabetic_word_ratio(text: AnalyzedText, split: Splitter) -> float:
    """Return the share of words with a letter, a vowel sign with a width, or a Roman numeral."""
    mixed = text.get(_kinds, split).mixed
    without = sum(not any(map(_is_alphabetic, word)) for word in mixed)
    words = text.split(split)
    return ratio(len(words) - without, len(words))


def _is_alphabetic(character: str) -> bool:
    """Return whether a character has the Unicode property Alphabetic, except for marks above."""
    if character.isascii() or character.isalpha():
        return character.isalpha()
    return character in _ENCLOSED or unicodedata.category(character) in {"Mc", "Nl"}


def num_stop_words(
    text: AnalyzedText, split: Splitter, stop_words: frozenset[str] = STOP_WORDS
) -> int:
    """Return the number of different stop words, in lower case as given."""
    return len(stop_words.intersection(text.split(split)))


def stop_word_count(text: AnalyzedText, split: Splitter, most: int | None = None) -> int:
    """Return the number of occurrences of the eight common English words, up to ``most``."""
    number = sum(map(STOP_WORDS.__contains__, text.split(split)))
    return number if most is None else min(number, most)


def newlines_per_word(text: AnalyzedText, split: Splitter) -> float:
    """Return the number of newlines per word."""
    return ratio(text.text.count("\n"), len(text.split(split)))


def mean_word_length(text: AnalyzedText, split: Splitter) -> float:
    """Return the mean length of the words."""
    words = text.split(split)
    return ratio(sum(map(len, words)), len(words))


def max_word_length(text: AnalyzedText, split: Splitter) -> int:
    """Return the length of the longest word."""
    return max(map(len, text.split(split)), default=0)


def symbol_word_ratio(text: AnalyzedText, split: Splitter) -> float:
    """Return the share of words that are an ellipsis, or of whose length over half are runs of #.

    A run counts as one, so ``#`` and ``#a#`` are such words and ``####`` is not.
    """
    words = text.split(split)
    if not ("#" in text.text or any(map(text.text.__contains__, ("...", "…", "-»")))):
        return 0.0
    return ratio(sum(map(_is_symbol, words)), len(words))


def _is_symbol(word: str) -> bool:
    if word in _ELLIPSIS_WORDS:
        return True
    return "#" in word and len(_HASHES.findall(word)) / len(word) > 0.5


@shared
def refined_words(text: str) -> list[str]:
    """Return the words between spaces, tabs and newlines, in lower case, stripped of specials.

    Special characters are Data-Juicer's; words of nothing else are left out.
    """
    return _stripped(text.lower())


def _stripped(text: str) -> list[str]:
    words = text.replace("\n", " ").replace("\t", " ").split(" ")
    return [
        stripped
        for word in words
        if (stripped := word.strip(_ASCII_SPECIAL if word.isascii() else _SPECIAL))
    ]


def num_refined_words(text: AnalyzedText) -> int:
    """Return the number of words with a character that is not special."""
    if text.text.isascii():  # leave the separators and the other characters that are not special
        return len(text.text.encode("ascii").translate(_SEPARATED, _IGNORED).split())
    return len(_stripped(text.text))


def num_unspecial_words(text: AnalyzedText, split: Splitter) -> int:
    """Return the number of words of a splitter with a character that is not special."""
    return len([word for word in text.split(split) if word.strip(_SPECIAL)])


def share_in_list(text: AnalyzedText, listed: frozenset[str]) -> float:
    """Return the share of the refined words that are in a list of words in lower case."""
    words = refined_words(text)
    return ratio(sum(map(listed.__contains__, words)), len(words))


def capital_word_ratio(text: AnalyzedText, split: Splitter) -> float:
    """Return the share of words with a capital letter and no small one."""
    words = text.split(split)
    return ratio(sum(map(str.isupper, words)), len(words))


def distinct_word_ratio(text: AnalyzedText, split: Splitter) -> float:
    """Return the number of different words per word."""
    words = text.split(split)
    return ratio(len(set(words)), len(words))
