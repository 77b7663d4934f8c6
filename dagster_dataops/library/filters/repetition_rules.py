"""Filters by repeated characters, words, lines and paragraphs."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.analysis.signals import repetition_signals
from dagster_dataops.library.analysis.signals.line_signals import double_newline_parts
from dagster_dataops.library.filters.rules import (
    TextFilter,
    WordFilter,
    blank,
    bounds,
    filters,
    no_text,
)
from dagster_dataops.operators.options.ranges import Fraction, PositiveInt


class NgramRepetition(TextFilter):
    """A filter by the share of repeated n-grams. A subclass sets the signal and its name.

    Args:
        ngram_size: Number of items of an n-gram.
        min_ratio: Smallest share to keep; ``None`` for no limit.
        max_ratio: Largest share to keep; ``None`` for no limit.
        **kwargs: See `TextFilter`.
    """

    signal: Callable[..., float]
    signal_name: str

    def __init__(
        self,
        *,
        ngram_size: PositiveInt = 10,
        min_ratio: Fraction | None = None,
        max_ratio: Fraction | None = 0.5,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        ratio = partial(self.signal, size=ngram_size)
        self.rules = bounds(self.signal_name, ratio, min_ratio, max_ratio)


class CharacterRepetition(NgramRepetition, filters):
    """Drop texts in which few n-grams of characters make more than ``max_ratio`` of all.

    Reads ``input_key``. Of the n-grams of ``ngram_size`` characters, those that occur more than
    once, but at most the square root of the number of different ones, the most frequent first,
    count. A text shorter than that has 0.0. Signal ``char_rep_ratio``; reasons
    ``low_char_rep_ratio``, ``high_char_rep_ratio``. Recipes use 0.1 to 0.3. With numpy it is four
    times as fast.

    Source: ``character_repetition_filter`` of Data-Juicer, from the ROOTS corpus.
    """

    renamed_options: ClassVar = {"rep_len": "ngram_size"}

    signal, signal_name = staticmethod(repetition_signals.char_rep_ratio), "char_rep_ratio"


class WordRepetition(NgramRepetition, filters):
    """Drop texts in which more than ``max_ratio`` of the n-grams of words occur more than once.

    Reads ``input_key``. The n-grams have ``ngram_size`` words: the parts between spaces, tabs and
    newlines, in lower case and stripped of special characters. A text of fewer words has 0.0.
    Signal ``word_rep_ratio``; reasons ``low_word_rep_ratio``, ``high_word_rep_ratio``. With numpy
    it is faster.

    Source: ``word_repetition_filter`` of Data-Juicer, from the ROOTS corpus.
    """

    renamed_options: ClassVar = {"rep_len": "ngram_size"}

    signal, signal_name = staticmethod(repetition_signals.word_rep_ratio), "word_rep_ratio"


class RepeatedLines(TextFilter, filters):
    """Keep texts in which ``max_repeated_lines_ratio`` of the lines are different.

    Reads ``input_key``. The option is a minimum of different lines, as upstream. Blank lines do not
    count. Signal ``distinct_line_ratio``; reasons ``empty``, ``low_distinct_line_ratio``.

    Source: ``RepeatedLinesFilter`` of NeMo Curator, which fails on a text without lines.

    Args:
        max_repeated_lines_ratio: Smallest share to keep; ``None`` for no limit.
    """

    renamed_options: ClassVar = {"max_repeated_line_fraction": "max_repeated_lines_ratio"}

    nothing = staticmethod(blank)

    def __init__(self, *, max_repeated_lines_ratio: Fraction | None = 0.7, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        ratio = repetition_signals.distinct_lines
        self.rules = bounds("distinct_line_ratio", ratio, max_repeated_lines_ratio, None)


class RepeatedLinesByChar(TextFilter, filters):
    """Keep texts in which different lines have ``max_repeated_lines_char_ratio`` of the characters.

    Reads ``input_key``. The option is a minimum, as upstream. Blank lines do not count. Signal
    ``distinct_line_char_ratio``; reasons ``empty``, ``low_distinct_line_char_ratio``.

    Source: ``RepeatedLinesByCharFilter`` of NeMo Curator, which fails on a text without lines.

    Args:
        max_repeated_lines_char_ratio: Smallest share to keep; ``None`` for no limit.
    """

    nothing = staticmethod(blank)

    def __init__(
        self, *, max_repeated_lines_char_ratio: Fraction | None = 0.8, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        ratio = repetition_signals.distinct_line_chars
        self.rules = bounds("distinct_line_char_ratio", ratio, max_repeated_lines_char_ratio, None)


class RepeatedParagraphs(TextFilter, filters):
    """Keep texts in which ``max_repeated_paragraphs_ratio`` of the paragraphs are different.

    Reads ``input_key``. The option is a minimum, as upstream. Paragraphs are the parts between
    pairs of newlines. Signal ``distinct_paragraph_ratio``; reason ``low_distinct_paragraph_ratio``.

    Source: ``RepeatedParagraphsFilter`` of NeMo Curator.

    Args:
        max_repeated_paragraphs_ratio: Smallest share to keep; ``None`` for no limit.
    """

    def __init__(
        self, *, max_repeated_paragraphs_ratio: Fraction | None = 0.7, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        ratio = repetition_signals.distinct_paragraphs
        self.rules = bounds("distinct_paragraph_ratio", ratio, max_repeated_paragraphs_ratio, None)


def _no_paragraphs(text: AnalyzedText) -> bool:
    return not any(double_newline_parts(text))


class RepeatedParagraphsByChar(TextFilter, filters):
    """Keep texts in which different paragraphs have a share of the characters.

    Reads ``input_key``. ``max_repeated_paragraphs_char_ratio`` is a minimum, as upstream.
    Paragraphs are the parts between pairs of newlines. Signal ``distinct_paragraph_char_ratio``;
    reasons ``empty``, ``low_distinct_paragraph_char_ratio``.

    Source: ``RepeatedParagraphsByCharFilter`` of NeMo Curator, which fails on empty paragraphs.

    Args:
        max_repeated_paragraphs_char_ratio: Smallest share to keep; ``None`` for no limit.
    """

    nothing = staticmethod(_no_paragraphs)

    def __init__(
        self, *, max_repeated_paragraphs_char_ratio: Fraction | None = 0.8, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        least = max_repeated_paragraphs_char_ratio
        ratio = repetition_signals.distinct_paragraph_chars
        self.rules = bounds("distinct_paragraph_char_ratio", ratio, least, None)


class RepeatingTopNGrams(WordFilter, filters):
    """Drop texts that lose more than a share of their characters with the most frequent n words.

    Reads ``input_key``. The words, joined by a space, are removed as one string; of several
    n-grams, the first is taken, where upstream takes any. Signal
    ``repeating_top_<ngram_size>_grams``; reasons ``empty``,
    ``high_repeating_top_<ngram_size>_grams``. A text of fewer than ``ngram_size`` words has 1.0.

    Source: ``RepeatingTopNGramsFilter`` of NeMo Curator.

    Args:
        ngram_size: Number of words of an n-gram.
        max_repeating_ngram_ratio: Largest share to keep; ``None`` for no limit.
    """

    renamed_options: ClassVar = {"n": "ngram_size"}

    nothing = staticmethod(no_text)

    def __init__(
        self,
        *,
        ngram_size: PositiveInt = 2,
        max_repeating_ngram_ratio: Fraction | None = 0.2,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        ratio = self.of_words(repetition_signals.removed_top_ngram_share, size=ngram_size)
        self.rules = bounds(
            f"repeating_top_{ngram_size}_grams", ratio, None, max_repeating_ngram_ratio
        )


class RepeatingDuplicateNGrams(WordFilter, filters):
    """Drop texts in which more than a share of the characters are in repeated n-grams of words.

    Reads ``input_key``. An n-gram counts after its first occurrence, with the spaces inside; words
    in several of them count once. Signal ``repeating_dup_<ngram_size>_grams``; reasons ``empty``,
    ``high_repeating_dup_<ngram_size>_grams``. A text of fewer than ``ngram_size`` words has 1.0.

    Source: ``RepeatingDuplicateNGramsFilter`` of NeMo Curator.

    Args:
        ngram_size: Number of words of an n-gram.
        max_repeating_duplicate_ngram_ratio: Largest share to keep; ``None`` for no limit.
    """

    renamed_options: ClassVar = {"n": "ngram_size"}

    nothing = staticmethod(no_text)

    def __init__(
        self,
        *,
        ngram_size: PositiveInt = 2,
        max_repeating_duplicate_ngram_ratio: Fraction | None = 0.2,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        ratio = self.of_words(repetition_signals.repeated_ngram_share, size=ngram_size)
        most = max_repeating_duplicate_ngram_ratio
        self.rules = bounds(f"repeating_dup_{ngram_size}_grams", ratio, None, most)
