"""`simplified`: a text without marks that often differ between copies of it."""

import re
import unicodedata
from typing import Final

from dagster_dataops.library.analysis.character_sets import PLAIN_PUNCTUATION
from dagster_dataops.library.analysis.unicode_normalization import normalized

_SEPARATORS: Final = ".,\u060c\u066b\u2396-\u2398"  # of a number's two parts
_NUMBER: Final = re.compile(rf"\d+(?:[{_SEPARATORS}]\d+)?")
_SPACES: Final = dict.fromkeys(map(ord, PLAIN_PUNCTUATION), " ")
_ASCII_SPACES: Final = bytes(
    ord(" ") if chr(byte) in PLAIN_PUNCTUATION else ord(chr(byte).lower()) for byte in range(128)
) + bytes(128)


def simplified(text: str) -> str:
    """Return the text in lower case, with 0 for every number, and without marks.

    Punctuation becomes a space, runs of white space become one space, and letters lose their
    diacritics (NFD without nonspacing marks), as in datatrove.
    """
    if text.isascii():
        numbered = _NUMBER.sub("0", text)
        return " ".join(numbered.encode().translate(_ASCII_SPACES).decode().split())
    spaced = _NUMBER.sub("0", text.lower()).translate(_SPACES)
    letters = normalized("NFD", " ".join(spaced.split()))
    if letters.isascii():
        return letters
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Mn").strip()
