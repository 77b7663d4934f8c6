"""Filters by sentences, different words, punctuation, characters and lines of a text."""

import re
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Literal

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.analysis.sentence_splitting import sentences_function
from dagster_dataops.library.analysis.signals import line_signals
from dagster_dataops.library.analysis.word_splitting import Splitter
from dagster_dataops.library.filters.rules import (
    Rule,
    TextFilter,
    WordFilter,
    blank,
    bounds,
    filters,
)
from dagster_dataops.operators.options.ranges import AtLeastZero, Fraction

_MARK: Final = re.compile(r"[^\w\s]|\n")
_FEW_LINES: Final = 3


class SentenceCount(TextFilter, filters):
    """Keep texts with ``min_sentences`` to ``max_sentences`` sentences.

    Reads ``input_key``. Signal ``num_sentences``; reasons ``empty``, ``low_num_sentences``,
    ``high_num_sentences``.

    Source: ``sentence_count_filter`` of LazyLLM, which downloads a splitter for English.

    Args:
        min_sentences: Smallest number of sentences to keep; ``None`` for no limit.
        max_sentences: Largest number of sentences to keep; ``None`` for no limit.
        sentences: How texts are split into sentences: ``rule``, ``newline``, ``spacy`` or a
            function.
        language: ISO 639-1 code for ``sentences="spacy"``.
    """

    renamed_options: ClassVar = {"min_num": "min_sentences", "max_num": "max_sentences"}

    nothing = staticmethod(blank)

    def __init__(
        self,
        *,
        min_sentences: AtLeastZero | None = 3,
        max_sentences: AtLeastZero | None = None,
        sentences: str | Splitter = "rule",
        language: str = "en",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        count = partial(_num_sentences, split=sentences_function(sentences, language))
        self.rules = bounds("num_sentences", count, min_sentences, max_sentences)


class UniqueWordRatio(WordFilter, filters):
    """Keep texts in which the different words are at least ``min_ratio`` of the words.

    Reads ``input_key``. Case does not count. By default, words are runs of letters and digits, and
    single characters in Chinese and Japanese. Signal ``unique_word_ratio``; reasons ``empty``,
    ``low_unique_word_ratio``. The ratio falls with the length of a text, and is lower where a word
    is one character.

    Source: ``unique_word_filter`` of LazyLLM.

    Args:
        min_ratio: Smallest share to keep; ``None`` for no limit.
    """

    def __init__(
        self, *, min_ratio: Fraction | None = 0.1, words: str | Splitter = "regex", **kwargs: Any
    ) -> None:
        super().__init__(words=words, **kwargs)
        self.nothing = self.no_words
        ratio = self.of_words(_unique_word_ratio)
        self.rules = bounds("unique_word_ratio", ratio, min_ratio, None)


class PunctuationGap(TextFilter, filters):
    """Drop texts with more than ``max_gap`` words in a row without a mark.

    Reads ``input_key``. A mark is a line end, or anything that is neither a letter, a digit, an
    underscore nor white space. Signal ``punctuation_gap``; reasons ``empty``,
    ``high_punctuation_gap``.

    Source: ``no_punc_filter`` of LazyLLM.

    Args:
        max_gap: Largest number of words to keep; ``None`` for no limit.
        unit: ``words``, or ``characters`` for scripts without spaces, whose sentences have more
            characters than English ones have words.
    """

    renamed_options: ClassVar = {"max_length": "max_gap"}

    nothing = staticmethod(blank)

    def __init__(
        self,
        *,
        max_gap: AtLeastZero | None = 112,
        unit: Literal["words", "characters"] = "words",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        longest = _longest_words if unit == "words" else _longest_characters
        self.rules = bounds("punctuation_gap", longest, None, max_gap)


class CharacterShare(TextFilter, filters):
    """Keep texts in which ``min_ratio`` to ``max_ratio`` of the characters are listed ones.

    Reads ``input_key``. Signal ``character_share``; reasons ``empty``, ``low_character_share``,
    ``high_character_share``. Give at least one of the limits.

    Source: ``curly_bracket_filter`` of LazyLLM, with 0.08 for ``{}``.

    Args:
        characters: A text of the characters, such as ``"{}"`` for code.
        min_ratio: Smallest share to keep; ``None`` for no limit.
        max_ratio: Largest share to keep; ``None`` for no limit.
    """

    nothing = staticmethod(blank)

    def __init__(
        self,
        characters: str,
        *,
        min_ratio: Fraction | None = None,
        max_ratio: Fraction | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not characters or (min_ratio is None and max_ratio is None):
            msg = "give characters, and min_ratio or max_ratio"
            raise DefinitionError(msg)
        share = partial(_character_share, characters=frozenset(characters))
        self.rules = bounds("character_share", share, min_ratio, max_ratio)


class LinesContaining(TextFilter, filters):
    """Drop texts in which fewer than ``min_other_lines`` lines have none of the substrings.

    Reads ``input_key``. Blank lines do not count, and a text with up to three lines is kept. Case
    does not count. Signal ``other_lines``, the number of such lines; reasons ``empty``,
    ``low_other_lines``.

    Source: ``javascript_filter`` of LazyLLM, one of whose patterns never matches.

    Args:
        substrings: The substrings; by default, those of JavaScript.
        min_other_lines: Smallest number of lines without them to keep.
    """

    nothing = staticmethod(blank)

    def __init__(
        self,
        substrings: Sequence[str] = (
            "javascript",
            "<script",
            "</script",
            "function(",
            "=>",
            "console.log",
            "document.",
            "window.",
            "addeventlistener",
            "typeof ",
        ),
        *,
        min_other_lines: AtLeastZero = 3,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if isinstance(substrings, str) or not substrings or not all(substrings):
            msg = f"substrings is {substrings!r}; give a list of texts that are not empty"
            raise DefinitionError(msg)
        marks = "|".join(re.escape(substring.lower()) for substring in substrings)
        count = partial(_other_lines, pattern=re.compile(marks), least=min_other_lines)
        self.rules = [Rule("low_other_lines", "other_lines", count, least=min_other_lines)]


def _num_sentences(text: AnalyzedText, split: Splitter) -> int:
    return len(text.split(split))


def _unique_word_ratio(text: AnalyzedText, split: Splitter) -> float:
    words = text.split(split)
    return len(set(map(str.lower, words))) / len(words) if words else 0.0


def _longest_words(text: AnalyzedText) -> int:
    return max(len(part.split()) for part in _MARK.split(text.text))


def _longest_characters(text: AnalyzedText) -> int:
    return max(len(part.strip()) for part in _MARK.split(text.text))


def _character_share(text: AnalyzedText, characters: Collection[str]) -> float:
    return sum(map(text.text.count, characters)) / len(text.text) if text.text else 0.0


def _other_lines(text: AnalyzedText, pattern: re.Pattern[str], least: int) -> int:
    """Return the number of lines without a match; at least ``least`` for a text with few lines."""
    lines = line_signals.filled_lines(text)
    others = sum(pattern.search(line.lower()) is None for line in lines)
    return max(others, least) if len(lines) <= _FEW_LINES else others
