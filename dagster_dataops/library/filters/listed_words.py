"""Filters by words of the user's lists."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import xxhash

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.analysis.word_search import WordSearch, words_from
from dagster_dataops.library.filters.rules import Rule, TextFilter, filters
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.operators.options.ranges import AtLeastZero, Fraction

_WITHOUT_SPACES: Final = frozenset({"ja", "th", "zh"})


class Blocklist(TextFilter, filters):
    """Drop texts with more than ``max_hits`` occurrences of words in a list.

    Reads ``input_key``. ``words`` are words or phrases, or the path of a file with one in each
    line; lines that begin with ``#`` are comments. With ``whole_words``, "ass" is not found in
    "class". Occurrences may overlap. Signal ``blocklist_hits``; reason ``blocklist``. Needs the
    extra ``word-lists``.

    Source: LazyLLM's word filter, which finds parts of words.

    Args:
        words: Words and phrases, or the path of a file of them.
        max_hits: Largest number of occurrences to keep.
        whole_words: Whether parts of longer words do not count.
        ignore_case: Whether case does not count.
    """

    def __init__(
        self,
        words: Collection[str] | Annotated[str | Path, FileContent],
        *,
        max_hits: AtLeastZero = 0,
        whole_words: bool = True,
        ignore_case: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        listed = words_from("words", words)
        self._search = WordSearch(
            "filters.Blocklist", listed, whole_words=whole_words, ignore_case=ignore_case
        )
        self.rules = [Rule("blocklist", "blocklist_hits", self._hits, most=max_hits)]

    def _hits(self, text: AnalyzedText) -> int:
        return self._search.count(text.text)


class C4BadWords(TextFilter, filters):
    """Drop texts with a word of a list, but keep a share of them.

    Reads ``input_key``. ``words`` are words or phrases, or the path of a file with one in each
    line; no list is shipped. Case does not count. In Japanese, Thai and Chinese (``language`` ja,
    th, zh), a word is found anywhere, otherwise not inside another word. The share
    ``keep_ratio`` of the texts with such words is kept; which ones depends on the text and
    ``seed`` alone. Signal ``bad_words`` (0 or 1; 0 for those that are kept so); reason
    ``document_removed_with_badwords``. Needs the extra ``word-lists``.

    Source: Raffel et al. 2020, arXiv:1910.10683; ``C4BadWordsFilter`` of datatrove, which downloads
    its lists and draws random numbers.

    Args:
        words: Words and phrases, or the path of a file of them.
        keep_ratio: Share of the texts with such words to keep, 0 to 1.
        seed: Another number keeps other texts.
        language: ISO 639-1 code of the texts.
    """

    renamed_options: ClassVar = {"keep_fraction": "keep_ratio"}

    def __init__(
        self,
        words: Collection[str] | Annotated[str | Path, FileContent],
        *,
        keep_ratio: Fraction = 0.0,
        seed: int = 0,
        language: str = "en",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._search = WordSearch(
            "filters.C4BadWords",
            words_from("words", words),
            whole_words=language not in _WITHOUT_SPACES,
            ignore_case=True,
        )
        self._kept, self._seed = keep_ratio, seed
        self.rules = [Rule("document_removed_with_badwords", "bad_words", self._bad, most=0)]

    def _bad(self, text: AnalyzedText) -> int:
        if self._search.first(text.text) is None:
            return 0
        if not self._kept:
            return 1
        encoded = text.text.encode("utf-8", "surrogatepass")
        return int(xxhash.xxh3_64_intdigest(encoded, self._seed) >= self._kept * 2**64)
