"""Operators of group ``text`` that remove links."""

import re
import string
from collections.abc import Iterator
from typing import Any, Final

from dagster_dataops.data import data_register
from dagster_dataops.library.field_keys import Keys
from dagster_dataops.library.text_mapping import TextMapping
from dagster_dataops.records import Record

text: Any = data_register.new_group("text")

# The three beginnings of a link: a scheme, www, a domain. The first and the last are looked for
# from the colon or slash at their end, so that a run of characters is read once.
_SCHEME: Final = re.compile(r"\b[a-z][\w-]+:", re.IGNORECASE)
_WWW: Final = re.compile(r"\bwww\d{0,3}[.]", re.IGNORECASE)
_DOMAIN: Final = re.compile(r"\b[a-z0-9.\-]+[.][a-z]{2,4}/", re.IGNORECASE)
_LETTERS: Final = f"{string.ascii_letters}\u0130\u0131\u017f\u212a"  # [a-z] of such a pattern
_AFTER_COLON: Final = frozenset(f"{_LETTERS}{string.digits}/%")
_OF_HOST: Final = f"{_LETTERS}{string.digits}.-"

_PLAIN: Final = r"[^\s()<>]"
_INSIDE: Final = rf"\((?:{_PLAIN}++|\({_PLAIN}++\))*+\)"
_BRACKETS: Final = re.compile(_INSIDE)
_REST: Final = re.compile(rf"(?:{_PLAIN}++|{_INSIDE})*+")
_NOT_LAST: Final = "`![]{};:'\".,?«»“”‘’"  # the punctuation of the sentence around a link
_URL: Final = re.compile(r"https?://\S+|www\.\S+", re.IGNORECASE)


class RemoveLinks(text):
    """Remove links: with a scheme, beginning with ``www.``, or a domain with a slash.

    Brackets in a link are kept together, up to one level inside another, and punctuation after it
    stays. Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same
    keys).

    As ``clean_links_mapper`` of Data-Juicer, whose pattern is John Gruber's. That takes exponential
    time after an open bracket; this operator takes linear time.

    Args:
        input_key: The key of the text.
        output_key: Where the result is written.
        replace: The text that replaces a link.
        pattern: A regular expression of your own instead, for Python's ``re``.
    """

    def __init__(
        self,
        input_key: Keys = "text",
        output_key: Keys | None = None,
        *,
        replace: str = "",
        pattern: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._replace = replace
        self._pattern = re.compile(pattern) if pattern is not None else None
        self._mapping = TextMapping(self._without_links, input_key, output_key)

    def forward(self, record: Record) -> Record:
        return self._mapping(record)

    def _without_links(self, value: str) -> str:
        if self._pattern is not None:
            return self._pattern.sub(self._replace, value)
        pieces, place = [], 0
        for start, end in _links(value):
            pieces += [value[place:start], self._replace]
            place = end
        return "".join([*pieces, value[place:]]) if pieces else value


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
            while start > place and (value[start - 1].isalnum() or value[start - 1] in "_-"):
                start -= 1
            found = _SCHEME.search(value, start, colon + 1)
            if found:
                yield found.start(), colon + 2
        place = colon + 1


def _hosts(value: str) -> Iterator[tuple[int, int]]:
    """Yield the start of links without a scheme, and the place after their beginning."""
    if "www" in value.lower():
        yield from (found.span() for found in _WWW.finditer(value))
    place = 0
    while (slash := value.find("/", place)) >= 0:
        if value.rfind(".", max(place, slash - 5), slash - 2) >= 0:
            start = place + len(value[place:slash].rstrip(_OF_HOST))
            found = _DOMAIN.search(value, start, slash + 1)
            if found:
                yield found.span()
        place = slash + 1


def _end_of_link(value: str, start: int) -> int:
    """Return the end of a link whose beginning ends at ``start``; -1 if it is none.

    At least two elements must follow: characters or brackets. The last one is no punctuation.
    """
    rest = _REST.match(value, start)
    kept = rest[0].rstrip(_NOT_LAST) if rest else ""
    if len(kept) < 2 or (kept[0] == "(" and _BRACKETS.fullmatch(kept)):
        return -1
    return start + len(kept)


class RemoveUrls(text):
    """Remove URLs that begin with ``http://``, ``https://`` or ``www.``, up to the next space.

    Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same keys).
    As ``UrlRemover`` of NeMo Curator. `text.RemoveLinks` finds more, and leaves punctuation.

    Args:
        input_key: The key of the text.
        output_key: Where the result is written.
    """

    def __init__(
        self, input_key: Keys = "text", output_key: Keys | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._mapping = TextMapping(_without_urls, input_key, output_key)

    def forward(self, record: Record) -> Record:
        return self._mapping(record)


def _without_urls(value: str) -> str:
    return _URL.sub("", value) if "://" in value or "." in value else value
