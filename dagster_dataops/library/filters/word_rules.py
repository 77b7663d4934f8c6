"""Filters by the words of a text: common words, words of symbols, words in a list."""

from collections.abc import Collection
from functools import partial
from typing import Any, ClassVar

from dagster_dataops.library.analysis.signals import word_signals
from dagster_dataops.library.analysis.stop_words import stop_words_of
from dagster_dataops.library.filters.rules import Rule, TextFilter, WordFilter, bounds, filters
from dagster_dataops.operators.options.ranges import AtLeastZero, Fraction


class SymbolsToWords(WordFilter, filters):
    """Drop texts in which more than a share of the words are an ellipsis or runs of ``#``.

    Reads ``input_key``. A word is one if its runs of ``#`` are more than half as many as its
    characters; a run counts as one, so ``#`` is one and ``####`` is not. Signal
    ``symbol_word_ratio``; reasons ``empty``, ``high_symbol_word_ratio``.

    Source: ``SymbolsToWordsFilter`` of NeMo Curator, which fails on a text without words.

    Args:
        max_symbol_to_word_ratio: Largest share to keep; ``None`` for no limit.
    """

    def __init__(self, *, max_symbol_to_word_ratio: Fraction | None = 0.1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.nothing = self.no_words
        ratio = self.of_words(word_signals.symbol_word_ratio)
        self.rules = bounds("symbol_word_ratio", ratio, None, max_symbol_to_word_ratio)


class CommonEnglishWords(WordFilter, filters):
    """Keep texts with ``min_common_words`` of the, be, to, of, and, that, have, with.

    Reads ``input_key``. Each occurrence counts, in lower case only. With ``stop_at_false``,
    counting stops at the minimum. Signal ``num_common_words``; reason ``low_num_common_words``.

    Source: ``CommonEnglishWordsFilter`` of NeMo Curator, where ``stop_at_false`` is on by default.

    Args:
        min_common_words: Smallest number of occurrences to keep; ``None`` for no limit.
        stop_at_false: Whether counting stops at the minimum.
    """

    renamed_options: ClassVar = {"min_num_common_words": "min_common_words"}

    def __init__(
        self,
        *,
        min_common_words: AtLeastZero | None = 2,
        stop_at_false: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        most = min_common_words if stop_at_false else None
        number = self.of_words(word_signals.stop_word_count, most=most)
        self.rules = bounds("num_common_words", number, min_common_words, None)


class WordsWithoutAlphabets(WordFilter, filters):
    """Keep texts in which ``min_alpha_words_ratio`` of the words have a letter.

    Reads ``input_key``. Signal ``alphabetic_word_ratio``; reasons ``empty``,
    ``low_alphabetic_word_ratio``.

    Source: ``WordsWithoutAlphabetsFilter`` of NeMo Curator, which fails on a text without words.

    Args:
        min_alpha_words_ratio: Smallest share to keep; ``None`` for no limit.
    """

    renamed_options: ClassVar = {"min_words_with_alphabets": "min_alpha_words_ratio"}

    def __init__(self, *, min_alpha_words_ratio: Fraction | None = 0.8, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.nothing = self.no_words
        ratio = self.of_words(word_signals.alphabetic_word_ratio)
        self.rules = bounds("alphabetic_word_ratio", ratio, min_alpha_words_ratio, None)


class CapitalWords(WordFilter, filters):
    """Drop texts in which more than ``max_ratio`` of the words have capital letters alone.

    Reads ``input_key``. Such a word has a capital letter and no small one: ``HTML5``, ``I``. Signal
    ``capital_word_ratio``; reasons ``empty``, ``high_capital_word_ratio``.

    Source: ``CapitalWordFilter`` of LazyLLM.

    Args:
        max_ratio: Largest share to keep; ``None`` for no limit.
    """

    def __init__(self, *, max_ratio: Fraction | None = 0.5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.nothing = self.no_words
        ratio = self.of_words(word_signals.capital_word_ratio)
        self.rules = bounds("capital_word_ratio", ratio, None, max_ratio)


class StopWordRatio(TextFilter, filters):
    """Keep texts in which ``min_ratio`` to ``max_ratio`` of the words are stop words.

    Reads ``input_key``. Words are the parts between spaces, tabs and newlines, in lower case and
    stripped of special characters; in Chinese, Japanese and Thai, single characters are counted.
    The stop words are those of ``language``, an ISO 639-1 code, or ``stop_words``. Signal
    ``stopwords_ratio``; reasons ``low_stopwords_ratio``, ``high_stopwords_ratio``. ``None`` is no
    limit.

    Lists ship for 20 languages: ar cs da de el en es fi fr hi hu id it nl no pl pt ru sv tr. They
    are short, so ratios are lower than Data-Juicer's.

    Source: ``stopwords_filter`` of Data-Juicer, whose lists are downloaded.

    Args:
        min_ratio: Smallest share to keep; ``None`` for no limit.
        max_ratio: Largest share to keep; ``None`` for no limit.
        language: ISO 639-1 code of the list to use.
        stop_words: Words to use in place of the list.
    """

    renamed_options: ClassVar = {"lang": "language"}

    def __init__(
        self,
        *,
        min_ratio: Fraction | None = 0.3,
        max_ratio: Fraction | None = None,
        language: str = "en",
        stop_words: Collection[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        listed = (
            stop_words_of(language) if stop_words is None else frozenset(map(str.lower, stop_words))
        )
        ratio = partial(word_signals.share_in_list, listed=listed)
        self.rules = bounds("stopwords_ratio", ratio, min_ratio, max_ratio)


class FlaggedWords(TextFilter, filters):
    """Drop texts in which more than ``max_ratio`` of the words are in a list.

    Reads ``input_key``. ``words`` is the list; case does not count. Words of the text are the parts
    between spaces, tabs and newlines, in lower case and stripped of special characters. Signal
    ``flagged_words_ratio``; reason ``high_flagged_words_ratio``.

    Source: ``flagged_words_filter`` of Data-Juicer, whose lists are downloaded.

    Args:
        words: The list.
        max_ratio: Largest share to keep; ``None`` for no limit.
    """

    def __init__(
        self, words: Collection[str], *, max_ratio: Fraction | None = 0.045, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        listed = frozenset(map(str.lower, words))
        ratio = partial(word_signals.share_in_list, listed=listed)
        name = "flagged_words_ratio"
        self.rules = [Rule(f"high_{name}", name, ratio, most=max_ratio)]
