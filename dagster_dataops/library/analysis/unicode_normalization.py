"""Unicode normalization in linear time, and texts that UTF-8 can hold."""

import re
import unicodedata
from typing import Final, Literal, TypeAlias

Form: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SHORT: Final = 2000  # characters; a text of any kind is normalized in milliseconds
_LONG_RUN: Final = re.compile(r"[^\x00-\u02ff\w\s]{500}")  # all combining marks, and some others


def normalized(form: Form, text: str) -> str:
    """Return ``text`` in a Unicode normalization form.

    Runs of more than 500 combining marks are normalized in pieces, because sorting the marks takes
    time that grows with the square of the run.
    """
    if text.isascii():
        return text
    if len(text) <= _SHORT or _LONG_RUN.search(text) is None:
        return unicodedata.normalize(form, text)
    ends = [match.end() for match in _LONG_RUN.finditer(text)]
    pieces = zip([0, *ends], [*ends, len(text)], strict=True)
    return "".join(unicodedata.normalize(form, text[start:end]) for start, end in pieces)


def valid_text(text: str) -> str:
    """Return ``text`` with U+FFFD for each lone surrogate, which UTF-8 cannot hold."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def without_long_runs(text: str) -> str:
    """Return ``text`` with a space for each 500 successive combining marks or symbols.

    For libraries that normalize texts themselves, in quadratic time.
    """
    return _LONG_RUN.sub(" ", text) if len(text) > _SHORT else text
