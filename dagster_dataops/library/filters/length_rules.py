"""Filters by the numbers of characters, words and lines of a text."""

from typing import Any, ClassVar, Literal

from dagster_dataops.library.analysis.signals import character_signals, line_signals, word_signals
from dagster_dataops.library.analysis.word_splitting import Splitter
from dagster_dataops.library.filters.language_limits import by_language, words_of
from dagster_dataops.library.filters.rules import Signal, TextFilter, WordFilter, bounds, filters
from dagster_dataops.operators.options.ranges import AtLeastZero, AtLeastZeroFloat


class TextLength(TextFilter, filters):
    """Keep texts of ``min_chars`` to ``max_chars`` characters; white space counts.

    Reads ``input_key``. Signal ``text_len``; reasons ``low_text_len``, ``high_text_len``. ``None``
    is no limit. `text.LengthFilter` does not count white space.

    Source: ``text_length_filter`` of Data-Juicer.

    Args:
        min_chars: Smallest number of characters to keep; ``None`` for no limit.
        max_chars: Largest number of characters to keep; ``None`` for no limit.
    """

    renamed_options: ClassVar = {"min_len": "min_chars", "max_len": "max_chars"}

    def __init__(
        self,
        *,
        min_chars: AtLeastZero | None = 10,
        max_chars: AtLeastZero | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules = bounds("text_len", character_signals.text_len, min_chars, max_chars)


class WordCount(WordFilter, filters):
    """Keep texts of ``min_words`` to ``max_words`` words.

    Reads ``input_key``. Signal ``num_words``; reasons ``low_num_words``, ``high_num_words``.
    ``None`` is no limit. With ``strip="special"``, words of nothing but Data-Juicer's special
    characters (punctuation, digits, symbols) do not count; with ``strip=None``, all do.
    ``preset="nemo"`` counts all words between white space, with limits 50 and 100,000 in place of
    the defaults.

    Source: ``words_num_filter`` of Data-Juicer; ``WordCountFilter`` of NeMo Curator.

    Args:
        min_words: Smallest number of words to keep; ``None`` for no limit.
        max_words: Largest number of words to keep; ``None`` for no limit.
        strip: ``special``, or ``None`` to count all words.
        preset: ``datajuicer`` or ``nemo``.
        language: ISO 639-1 code of the texts; in languages without spaces, ``whitespace`` is
            ``regex``, so that each character is a word.
    """

    renamed_options: ClassVar = {"min_num": "min_words", "max_num": "max_words"}

    def __init__(
        self,
        *,
        min_words: AtLeastZero | None = 10,
        max_words: AtLeastZero | None = None,
        strip: Literal["special"] | None = "special",
        preset: Literal["datajuicer", "nemo"] = "datajuicer",
        words: str | Splitter = "whitespace",
        language: str = "en",
        **kwargs: Any,
    ) -> None:
        words = words_of(words, language)
        super().__init__(words=words, language=language, **kwargs)
        if preset == "nemo":
            strip = None
            min_words = 50 if min_words == 10 else min_words  # the default
            max_words = 100_000 if max_words is None else max_words
        number: Signal = self.of_words(word_signals.num_words)
        if strip:
            number = self.of_words(word_signals.num_unspecial_words)
        if strip and words == "whitespace":
            number = word_signals.num_refined_words
        self.rules = bounds("num_words", number, min_words, max_words)


class AverageLineLength(TextFilter, filters):
    """Keep texts whose lines have 10 characters or more on average.

    Reads ``input_key``. Line ends count; an empty text has 0. Signal ``avg_line_length``; reasons
    ``low_avg_line_length``, ``high_avg_line_length``. ``None`` is no limit.

    Source: ``average_line_length_filter`` of Data-Juicer.

    Args:
        min_mean_line_length: Smallest number of characters to keep; ``None`` for no limit.
        max_mean_line_length: Largest number of characters to keep; ``None`` for no limit.
    """

    renamed_options: ClassVar = {
        "min_len": "min_mean_line_length",
        "max_len": "max_mean_line_length",
    }

    def __init__(
        self,
        *,
        min_mean_line_length: AtLeastZeroFloat | None = 10,
        max_mean_line_length: AtLeastZeroFloat | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules = bounds(
            "avg_line_length",
            line_signals.avg_line_length,
            min_mean_line_length,
            max_mean_line_length,
        )


class MaximumLineLength(TextFilter, filters):
    """Keep texts whose longest line has ``min_line_length`` to ``max_line_length`` characters.

    Reads ``input_key``. Signal ``max_line_length``; reasons ``low_max_line_length``,
    ``high_max_line_length``. ``None`` is no limit.

    Source: ``maximum_line_length_filter`` of Data-Juicer.

    Args:
        min_line_length: Smallest number of characters to keep; ``None`` for no limit.
        max_line_length: Largest number of characters to keep; ``None`` for no limit.
    """

    renamed_options: ClassVar = {"min_len": "min_line_length", "max_len": "max_line_length"}

    def __init__(
        self,
        *,
        min_line_length: AtLeastZero | None = 10,
        max_line_length: AtLeastZero | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rules = bounds(
            "max_line_length", line_signals.max_line_length, min_line_length, max_line_length
        )


class MeanWordLength(WordFilter, filters):
    """Keep texts whose words have 3 to 10 characters on average.

    Reads ``input_key``. Signal ``mean_word_length``; reasons ``empty`` (no words),
    ``low_mean_word_length``, ``high_mean_word_length``. ``None`` is no limit.

    Source: ``MeanWordLengthFilter`` of NeMo Curator, which fails on a text without words.

    Args:
        min_mean_word_length: Smallest mean length of words to keep; ``None`` for no limit.
        max_mean_word_length: Largest mean length of words to keep; ``None`` for no limit.
        language: ISO 639-1 code of the texts. The defaults are for English; with other languages,
            they are 1 and 12 without spaces, 2 and 12 in Korean and Vietnamese, else 3 and 12.
    """

    def __init__(
        self,
        *,
        min_mean_word_length: AtLeastZeroFloat | None = 3,
        max_mean_word_length: AtLeastZeroFloat | None = 10,
        language: str = "en",
        **kwargs: Any,
    ) -> None:
        super().__init__(language=language, **kwargs)
        limits = {
            "min_mean_word_length": min_mean_word_length,
            "max_mean_word_length": max_mean_word_length,
        }
        min_mean_word_length, max_mean_word_length = by_language(
            MeanWordLength.__init__, language, limits
        ).values()
        self.nothing = self.no_words
        mean = self.of_words(word_signals.mean_word_length)
        self.rules = bounds("mean_word_length", mean, min_mean_word_length, max_mean_word_length)


class LongWord(WordFilter, filters):
    """Drop texts with a word of more than ``max_word_length`` characters.

    Reads ``input_key``. Signal ``max_word_length``; reasons ``empty`` (no words),
    ``high_max_word_length``. Finds minified code and encoded data.

    Source: ``LongWordFilter`` of NeMo Curator, which fails on a text without words.

    Args:
        max_word_length: Largest length of a word to keep; ``None`` for no limit.
    """

    def __init__(self, *, max_word_length: AtLeastZero | None = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.nothing = self.no_words
        longest = self.of_words(word_signals.max_word_length)
        self.rules = bounds("max_word_length", longest, None, max_word_length)
