"""Operators of group ``text`` that remove links."""

import re
import string
import unicodedata
from collections.abc import Iterator
from itertools import repeat
from typing import Any, ClassVar, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.text_spans import replaced
from dagster_dataops.library.text.text_cleaning import text
from dagster_dataops.library.text_mapping import TextOperator
from dagster_dataops.library.user_patterns import compiled

# The three beginnings of a link: a scheme, www, a domain. The first and the last are looked for
# from the colon or slash at their end, so that a run of characters is read once. As in the module
# `regex`, combining marks belong to a word, superscript digits do not, and U+001C is no space.
_WWW: Final = re.compile(r"www\d{0,3}[.]", re.IGNORECASE)
_LETTERS: Final = f"{string.ascii_letters}\u0130\u0131\u017f\u212a"  # [a-z] of such a pattern
_AFTER_COLON: Final = frozenset(f"{_LETTERS}{string.digits}/%")
_OF_HOST: Final = f"{_LETTERS}{string.digits}.-"
_LAST_LABEL: Final = re.compile(rf"[.][{_LETTERS}]{{2,4}}")
_OTHER_WORD_CATEGORIES: Final = frozenset({"Nd", "Nl", "Pc"})
_JOINERS: Final = "\u200c\u200d"

_SPACE: Final = "\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_PLAIN: Final = rf"[^{_SPACE}()<>]"
_INSIDE: Final = rf"\((?:{_PLAIN}++|\({_PLAIN}++\))*+\)"
_BRACKETS: Final = re.compile(_INSIDE)
_REST: Final = re.compile(rf"(?:{_PLAIN}++|{_INSIDE})*+")
_NOT_LAST: Final = "`![]{};:'\".,?«»“”‘’"  # the punctuation of the sentence around a link
_URL: Final = re.compile(r"https?://\S+|www\.\S+", re.IGNORECASE)


class RemoveLinks(TextOperator, text):
    """Remove links: with a scheme, beginning with ``www.``, or a domain with a slash.

    Brackets in a link are kept together, up to one level inside another, and punctuation after it
    stays. Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same
    keys).

    As ``clean_links_mapper`` of Data-Juicer, whose pattern is John Gruber's. That takes exponential
    time after an open bracket; this operator takes linear time.

    Args:
        replacement: The text that replaces a link.
        pattern: A regular expression of your own instead, for Python's ``re``.
    """

    renamed_options: ClassVar = {"replace": "replacement"}

    def __init__(
        self, *args: Any, replacement: str = "", pattern: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._replace = replacement
        self._pattern = None if pattern is None else compiled(pattern)

    @override
    def changed(self, value: str) -> str:
        if self._pattern is not None:
            changed: str = self._pattern.sub(self._replace, value)
            return changed
        return replaced(value, _links(value), repeat(self._replace))


def _links(value: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each link, in order, without overlaps."""
    beginnings = sorted({*_schemes(value), *_hosts(value)})
    place = 0
    for start, rest in beginnings:
        end = _end_of_link(value, rest) if start >= place else -1
        if end >= 0:
            yield start, end
            place = end


def _schemes(value: str) -> Iterator[tuple[int, int]]:
    """Yield the start of links with a scheme, and the place after the first character of it."""
    place = 0
    while (colon := value.find(":", place)) >= 0:
        if value[colon + 1 : colon + 2] in _AFTER_COLON:
            start = colon
            while start > place and (value[start - 1] == "-" or _in_word(value[start - 1])):
                start -= 1
            for first in range(start, colon - 1):
                if value[first] in _LETTERS and (first == start or value[first - 1] == "-"):
                    yield first, colon + 2
                    break
        place = colon + 1


def _hosts(value: str) -> Iterator[tuple[int, int]]:
    """Yield the start of links without a scheme, and the place after their beginning."""
    if "www" in value.lower():
        yield from (
            match.span() for match in _WWW.finditer(value) if _is_limit(value, match.start())
        )
    place = 0
    while (slash := value.find("/", place)) >= 0:
        dot = value.rfind(".", max(place, slash - 5), slash - 2)
        if dot >= 0 and _LAST_LABEL.fullmatch(value, dot, slash):
            start = place + len(value[place:dot].rstrip(_OF_HOST))
            limits = (first for first in range(start, dot) if _is_limit(value, first))
            first = next(limits, -1)
            if first >= 0:
                yield first, slash + 1
        place = slash + 1


def _is_limit(value: str, place: int) -> bool:
    """Return whether a word begins or ends at ``place``."""
    before = place > 0 and _in_word(value[place - 1])
    return before != _in_word(value[place])


def _in_word(character: str) -> bool:
    if character.isascii():
        return character.isalnum() or character == "_"
    category = unicodedata.category(character)
    return category[0] in "LM" or category in _OTHER_WORD_CATEGORIES or character in _JOINERS


def _end_of_link(value: str, start: int) -> int:
    """Return the end of a link whose beginning ends at ``start``; -1 if it is none.

    At least two elements must follow: characters or brackets. The last one is no punctuation.
    """
    rest = _REST.match(value, start)
    kept = rest[0].rstrip(_NOT_LAST) if rest else ""
    if len(kept) < 2 or (kept[0] == "(" and _BRACKETS.fullmatch(kept)):
        return -1
    return start + len(kept)


class RemoveUrls(TextOperator, text):
    """Remove URLs that begin with ``http://``, ``https://`` or ``www.``, up to the next space.

    Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same keys).
    As ``UrlRemover`` of NeMo Curator. `text.RemoveLinks` finds more, and leaves punctuation.
    """

    @override
    def changed(self, value: str) -> str:
        return _URL.sub("", value) if "://" in value or "." in value else value
