"""``filters.Url``: a filter by the URL that a text comes from."""

import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.hosts import canonical_host, canonical_url
from dagster_dataops.library.analysis.word_search import WordSearch, words_from
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.filters.rules import Filter, Judgement, filters
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.operators.options.ranges import AtLeastZero
from dagster_dataops.records import Record

_SEPARATOR: Final = re.compile("[^a-zA-Z0-9]+")
_Words = Collection[str] | Annotated[str | Path, FileContent]


class Url(Filter, filters):
    """Drop records whose URL is in a list or has words of a list.

    Reads ``url_key``; a record without a URL is kept. Each list is a list or the path of a file
    with one entry in each line; none is shipped. The reasons, in order: ``domain`` (the registered
    domain, such as ``example.co.uk``, is in ``domains``), ``subdomain`` (the host is), ``url`` (the
    URL is in ``urls``), ``hard_blacklisted`` (a word of the URL, between characters other than
    letters and digits, is in ``banned_words``), ``soft_blacklisted`` (``soft_word_threshold`` of
    them are in ``soft_words``), ``blacklisted_subword`` (one of ``banned_subwords`` is in the URL
    without other characters). Words are compared in lower case. Hosts are compared in their
    canonical form: without case, a last dot, user and port, and international names in ASCII or
    not, so that ``BÜCHER.de.`` is ``xn--bcher-kva.de``; URLs also without default port and
    fragment.

    Signals ``url_soft_words`` and ``url_banned`` (0 or 1). Needs the extra ``urls``. The list of
    public suffixes is the one in tldextract; nothing is downloaded.

    Source: ``URLFilter`` of datatrove, which compares words of the URL without lowering them.

    Args:
        domains: Registered domains and hosts.
        urls: URLs.
        banned_words: Words that none may have.
        soft_words: Words of which few are allowed.
        soft_word_threshold: How many of them drop a record.
        banned_subwords: Parts of words that none may have.
        url_key: Key of the URL: a column, or a selector.
    """

    def __init__(
        self,
        *,
        domains: _Words = (),
        urls: _Words = (),
        banned_words: _Words = (),
        soft_words: _Words = (),
        soft_word_threshold: AtLeastZero = 2,
        banned_subwords: _Words = (),
        url_key: str = "url",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column = FieldKey(url_key)
        self._domains = frozenset(map(canonical_host, words_from("domains", domains)))
        self._urls = frozenset(map(canonical_url, words_from("urls", urls)))
        self._banned = frozenset(map(_plain, words_from("banned_words", banned_words)))
        self._soft = frozenset(map(_plain, words_from("soft_words", soft_words)))
        self._most_soft = soft_word_threshold
        subwords = filter(None, map(_plain, words_from("banned_subwords", banned_subwords)))
        self._subwords = WordSearch(
            "filters.Url", subwords, whole_words=False, ignore_case=True, extra="urls"
        )
        self._domains -= {""}
        _extractor()

    @override
    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        del known, thorough
        url = self._column.text(record)
        if not url:
            return Judgement(None, {"url_soft_words": 0, "url_banned": 0})
        words = set(_SEPARATOR.split(url.lower()))
        soft = len(self._soft & words)
        reason = self._listed(url) or self._worded(url, words, soft)
        return Judgement(reason, {"url_soft_words": soft, "url_banned": int(reason is not None)})

    def _listed(self, url: str) -> str | None:
        if self._domains:
            host = canonical_host(url)
            if _extractor()(host).top_domain_under_public_suffix in self._domains:
                return "domain"
            if host in self._domains:
                return "subdomain"
        return "url" if self._urls and canonical_url(url) in self._urls else None

    def _worded(self, url: str, words: set[str], soft: int) -> str | None:
        if not self._banned.isdisjoint(words):
            return "hard_blacklisted"
        if self._soft and soft >= self._most_soft:
            return "soft_blacklisted"
        return "blacklisted_subword" if self._subwords.first(_plain(url)) else None


def _plain(word: str) -> str:
    return _SEPARATOR.sub("", word).lower()


@cache
def _extractor() -> Any:
    """Return the function that finds the registered domain and the host of a URL."""
    with needs_extra("filters.Url", "urls"):
        from tldextract import TLDExtract
    # No cache folder: nothing is written, and the list in the package is read.
    return TLDExtract(suffix_list_urls=(), cache_dir=None)
