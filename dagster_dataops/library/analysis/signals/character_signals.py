"""Signals of texts that count characters: pure functions of an `AnalyzedText` that return numbers.

A share of the characters of an empty text is 0.0, or 1.0 for those that say so.
"""

import re
import string
from typing import Final

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.analysis.character_counts import CharacterCounter, ratio
from dagster_dataops.library.analysis.character_sets import SPECIAL_CHARACTERS, SYMBOLS_AND_SPACES

_ALPHANUMERIC: Final = CharacterCounter(str.isalnum)
_SPECIAL: Final = CharacterCounter.of(SPECIAL_CHARACTERS)
_SYMBOL_OR_SPACE: Final = CharacterCounter.of(SYMBOLS_AND_SPACES)
_PLAIN: Final = CharacterCounter.of(string.ascii_letters + string.digits + "\n?!,.")
_DIGIT: Final = CharacterCounter.of(string.digits)
_WHITE: Final = CharacterCounter.of("\t\n\r\b ")
_BRACKET: Final = CharacterCounter.of("{}⟨⟩[]()")
_URL: Final = re.compile(r"https?://(?:[A-Za-z0-9$\-_@.&+/:=?#~!*(),]|%[0-9A-Fa-f]{2})+")


def text_len(text: AnalyzedText) -> int:
    """Return the number of characters, with white space."""
    return len(text.text)


def alnum_ratio(text: AnalyzedText) -> float:
    """Return the share of letters and digits."""
    return ratio(_ALPHANUMERIC.count(text), len(text.text))


def special_char_ratio(text: AnalyzedText) -> float:
    """Return the share of punctuation, digits, white space, symbols and emoji."""
    return ratio(_SYMBOL_OR_SPACE.count(text), len(text.text))


def special_char_ratio_datajuicer(text: AnalyzedText) -> float:
    """Return the share of Data-Juicer's special characters, which include some letters."""
    return ratio(_SPECIAL.count(text), len(text.text))


def non_alpha_numeric_ratio(text: AnalyzedText) -> float:
    r"""Return the share of characters other than ``a-zA-Z0-9\n?!,.``; 1.0 for an empty text."""
    return _share(len(text.text) - _PLAIN.count(text), text)


def numbers_ratio(text: AnalyzedText) -> float:
    """Return the share of the digits 0 to 9; 1.0 for an empty text."""
    return _share(_DIGIT.count(text), text)


def urls_ratio(text: AnalyzedText) -> float:
    """Return the share of characters in ``http://`` and ``https://`` URLs; 1.0 if empty."""
    urls = _URL.findall(text.text) if "://" in text.text else []
    return _share(sum(map(len, urls)), text)


def white_space_ratio(text: AnalyzedText) -> float:
    """Return the share of spaces, tabs, line ends and backspaces; 1.0 for an empty text."""
    return _share(_WHITE.count(text), text)


def parentheses_ratio(text: AnalyzedText) -> float:
    """Return the share of ``{}⟨⟩[]()``; 1.0 for an empty text."""
    return _share(_BRACKET.count(text), text)


def _share(number: int, text: AnalyzedText) -> float:
    return number / len(text.text) if text.text else 1.0
