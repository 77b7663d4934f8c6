"""Filters of published corpora: Gopher, FineWeb and mC4."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, ClassVar

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.analysis.signals import line_signals, repetition_signals, word_signals
from dagster_dataops.library.analysis.signals.line_signals import BULLETS, filled_lines
from dagster_dataops.library.filters.language_limits import by_language, usual_stop_words
from dagster_dataops.library.filters.rules import (
    EMPTY,
    Rule,
    TextFilter,
    WordFilter,
    filters,
    no_text,
)
from dagster_dataops.operators.options.ranges import AtLeastZero, AtLeastZeroFloat, Fraction

Shares = Sequence[Sequence[float]]


class GopherQuality(WordFilter, filters):
    """Keep texts that look like prose, by the quality rules of Gopher.

    Reads ``input_key``. Words of nothing but punctuation count neither in the number of words nor
    in their mean length, but in all shares. The reasons, in order: ``gopher_short_doc``,
    ``gopher_long_doc`` (``min_words``, ``max_words``), ``gopher_below_avg_threshold``,
    ``gopher_above_avg_threshold`` (``min_mean_word_length``, ``max_mean_word_length``),
    ``gopher_too_many_hashes``, ``gopher_too_many_ellipsis`` (``max_symbol_to_word_ratio``, marks
    per word), ``gopher_too_many_bullets`` (lines that start with one of ``bullets``),
    ``gopher_too_many_end_ellipsis`` (lines that end in an ellipsis),
    ``gopher_below_alpha_threshold`` (smallest share of words with a letter:
    ``max_non_alpha_words_ratio`` or, under a better name, ``min_alpha_words_ratio``),
    ``gopher_enough_stop_words`` (fewer than ``min_stop_words`` different ``stop_words``, in lower
    case).

    ``None`` switches a rule off, and the others still count: no mean length is judged in a text of
    punctuation, and a text without words is dropped as ``empty``, after the numbers and the mean
    length of words, if there is a limit for a share. With ``words="spacy"`` (extra ``spacy``),
    decisions are those of datatrove 0.10; commas then count as words without a letter, and far more
    texts are dropped.

    ``language`` chooses the stop words and, with other languages than English, the values of
    options that are left at their defaults: 0.7 for ``max_non_alpha_words_ratio``, 12 for
    ``max_mean_word_length``, and for ``min_mean_word_length`` 1 in languages without spaces (where
    ``whitespace`` is ``regex``, so that each character is a word) and 2 in Korean and Vietnamese.

    Source: Rae et al. 2021, arXiv:2112.11446, A1.1; ``GopherQualityFilter`` of datatrove, where a
    maximum of 0 switches a rule off; here it is a maximum. It fails on a text without words if
    ``min_words`` is off.

    Args:
        min_words: Smallest number of words to keep; ``None`` for no limit.
        max_words: Largest number of words to keep; ``None`` for no limit.
        min_mean_word_length: Smallest mean length of words to keep; ``None`` for no limit.
        max_mean_word_length: Largest mean length of words to keep; ``None`` for no limit.
        max_symbol_to_word_ratio: Largest number of hashes, and of ellipses, per word to keep;
            ``None`` for no limit.
        max_bullet_lines_ratio: Largest share of lines with a bullet to keep; ``None`` for no limit.
        max_ellipsis_lines_ratio: Largest share of lines that end in an ellipsis to keep; ``None``
            for no limit.
        max_non_alpha_words_ratio: Smallest share of words with a letter to keep; ``None`` for no
            limit. It is a minimum, as upstream.
        min_alpha_words_ratio: The same under a better name; it goes before the other.
        min_stop_words: Smallest number of different stop words to keep; ``None`` for no limit.
        stop_words: The stop words; ``None`` for those of the language, in English the, be, to, of,
            and, that, have, with. Without a list for the language, the rule is off.
        bullets: How lines with a bullet begin.
        language: ISO 639-1 code of the texts, also with a region, such as ``pt-BR``.
    """

    renamed_options: ClassVar = {
        "min_doc_words": "min_words",
        "max_doc_words": "max_words",
        "min_avg_word_length": "min_mean_word_length",
        "max_avg_word_length": "max_mean_word_length",
        "max_symbol_word_ratio": "max_symbol_to_word_ratio",
    }

    def __init__(
        self,
        *,
        min_words: AtLeastZero | None = 50,
        max_words: AtLeastZero | None = 100_000,
        min_mean_word_length: AtLeastZeroFloat | None = 3,
        max_mean_word_length: AtLeastZeroFloat | None = 10,
        max_symbol_to_word_ratio: AtLeastZeroFloat | None = 0.1,
        max_bullet_lines_ratio: Fraction | None = 0.9,
        max_ellipsis_lines_ratio: Fraction | None = 0.3,
        max_non_alpha_words_ratio: Fraction | None = 0.8,
        min_alpha_words_ratio: Fraction | None = None,
        min_stop_words: AtLeastZero | None = 2,
        stop_words: Collection[str] | None = None,
        bullets: Collection[str] = BULLETS,
        language: str = "en",
        **kwargs: Any,
    ) -> None:
        super().__init__(language=language, **kwargs)
        limits = by_language(
            GopherQuality.__init__,
            language,
            {
                "min_mean_word_length": min_mean_word_length,
                "max_mean_word_length": max_mean_word_length,
                "max_non_alpha_words_ratio": max_non_alpha_words_ratio,
            },
        )
        min_mean_word_length, max_mean_word_length, alpha = limits.values()
        of = self.of_words
        number, length = (
            of(word_signals.num_content_words),
            of(word_signals.avg_content_word_length),
        )
        hashes, ellipses = of(word_signals.hash_word_ratio), of(word_signals.ellipsis_word_ratio)
        bullet = partial(line_signals.bullet_line_ratio, bullets=tuple(bullets))
        letters = of(word_signals.alpha_word_ratio)
        alpha = alpha if min_alpha_words_ratio is None else min_alpha_words_ratio
        stops = usual_stop_words(language) if stop_words is None else frozenset(stop_words)
        min_stop_words = None if stops is None else min_stop_words
        stop = of(word_signals.num_stop_words, stop_words=stops or frozenset())
        most = max_symbol_to_word_ratio
        all_shares = (most, max_bullet_lines_ratio, max_ellipsis_lines_ratio, alpha)
        shares = any(limit is not None for limit in all_shares)
        self.rules = [
            Rule("gopher_short_doc", "num_content_words", number, min_words),
            Rule("gopher_long_doc", "num_content_words", number, most=max_words),
            Rule(
                "gopher_below_avg_threshold",
                "avg_word_length",
                length,
                min_mean_word_length,
                spared=0.0,
            ),
            Rule(
                "gopher_above_avg_threshold", "avg_word_length", length, most=max_mean_word_length
            ),
            Rule(EMPTY, "num_words", of(word_signals.num_words), 1 if shares else None),
            Rule("gopher_too_many_hashes", "hash_word_ratio", hashes, most=most),
            Rule("gopher_too_many_ellipsis", "ellipsis_word_ratio", ellipses, most=most),
            Rule(
                "gopher_too_many_bullets", "bullet_line_ratio", bullet, None, max_bullet_lines_ratio
            ),
            Rule(
                "gopher_too_many_end_ellipsis",
                "ellipsis_line_ratio",
                line_signals.ellipsis_line_ratio,
                most=max_ellipsis_lines_ratio,
            ),
            Rule("gopher_below_alpha_threshold", "alpha_word_ratio", letters, alpha),
            Rule("gopher_enough_stop_words", "num_stop_words", stop, min_stop_words),
        ]


class GopherRepetition(WordFilter, filters):
    """Drop texts that repeat themselves, by the repetition rules of Gopher.

    Reads ``input_key``. A rule drops a text whose share is larger than its limit; ``None`` switches
    it off. The reasons, in order: ``empty`` for a text without characters; ``dup_para_frac``,
    ``dup_para_char_frac`` (paragraphs between blank lines that repeat an earlier one, and their
    characters); ``dup_line_frac``, ``dup_line_char_frac`` (the same for lines); ``top_<n>_gram``
    for each ``(n, limit)`` of ``top_ngrams`` (characters in the most frequent n words, which in a
    text of n words is the text); ``duplicated_<n>_n_grams`` for each of ``duplicate_ngrams``
    (characters in n words that repeat earlier ones, read from left to right without overlap). With
    numpy it is faster.

    With other languages than English, options that are left at their defaults are 0.4 for
    ``max_duplicate_line_ratio`` and 0.25 for ``max_duplicate_line_char_ratio``; in languages
    without spaces, where each character is a word, ``duplicate_ngrams`` are of 10, 12, 14 and 16
    words.

    Source: Rae et al. 2021, arXiv:2112.11446, table A1; ``GopherRepetitionFilter`` of datatrove,
    exactly with ``words="spacy"`` (extra ``spacy``).

    Args:
        max_duplicate_line_ratio: Largest share of repeated lines to keep; ``None`` for no limit.
        max_duplicate_paragraph_ratio: Largest share of repeated paragraphs to keep; ``None`` for no
            limit.
        max_duplicate_line_char_ratio: Largest share of characters in repeated lines to keep;
            ``None`` for no limit.
        max_duplicate_paragraph_char_ratio: Largest share of characters in repeated paragraphs to
            keep; ``None`` for no limit.
        top_ngrams: Pairs of a number of words and the largest share of characters in the most
            frequent such n-gram.
        duplicate_ngrams: Pairs of a number of words and the largest share of characters in repeated
            such n-grams.
        language: ISO 639-1 code of the texts, also with a region.
    """

    renamed_options: ClassVar = {
        "dup_line_frac": "max_duplicate_line_ratio",
        "dup_para_frac": "max_duplicate_paragraph_ratio",
        "dup_line_char_frac": "max_duplicate_line_char_ratio",
        "dup_para_char_frac": "max_duplicate_paragraph_char_ratio",
        "top_n_grams": "top_ngrams",
        "dup_n_grams": "duplicate_ngrams",
    }

    nothing = staticmethod(no_text)

    def __init__(
        self,
        *,
        max_duplicate_line_ratio: Fraction | None = 0.3,
        max_duplicate_paragraph_ratio: Fraction | None = 0.3,
        max_duplicate_line_char_ratio: Fraction | None = 0.2,
        max_duplicate_paragraph_char_ratio: Fraction | None = 0.2,
        top_ngrams: Shares = ((2, 0.20), (3, 0.18), (4, 0.16)),
        duplicate_ngrams: Shares = (
            (5, 0.15),
            (6, 0.14),
            (7, 0.13),
            (8, 0.12),
            (9, 0.11),
            (10, 0.10),
        ),
        language: str = "en",
        **kwargs: Any,
    ) -> None:
        super().__init__(language=language, **kwargs)
        values = {
            "max_duplicate_line_ratio": max_duplicate_line_ratio,
            "max_duplicate_line_char_ratio": max_duplicate_line_char_ratio,
            "duplicate_ngrams": duplicate_ngrams,
        }
        chosen = by_language(GopherRepetition.__init__, language, values)
        of = self.of_words
        limits = {
            "dup_para_frac": max_duplicate_paragraph_ratio,
            "dup_para_char_frac": max_duplicate_paragraph_char_ratio,
            "dup_line_frac": chosen["max_duplicate_line_ratio"],
            "dup_line_char_frac": chosen["max_duplicate_line_char_ratio"],
        }
        named = [(name, getattr(repetition_signals, name), limit) for name, limit in limits.items()]
        named += [
            (f"top_{int(n)}_gram", of(repetition_signals.top_ngram_share, size=int(n)), limit)
            for n, limit in top_ngrams
        ]
        duplicate = repetition_signals.duplicate_ngram_share
        named += [
            (f"duplicated_{int(n)}_n_grams", of(duplicate, size=int(n)), limit)
            for n, limit in chosen["duplicate_ngrams"]
        ]
        self.rules = [Rule(name, name, value, most=limit) for name, value, limit in named]


def _no_lines(text: AnalyzedText) -> bool:
    return not filled_lines(text)


class FineWebQuality(WordFilter, filters):
    """Drop lists, menus and fragments, by the quality rules of FineWeb.

    Reads ``input_key``. The reasons, in order: ``empty`` (no line but blank ones);
    ``line_punct_ratio`` (less than ``min_line_punct_ratio`` of the lines end in one of
    ``stop_chars``, by default the marks that end a sentence in any script; a space at the end of a
    line counts; with ``line_punct_exclude_zero``, texts without such a line pass);
    ``short_line_ratio`` (more than ``max_short_line_ratio`` of the lines have at most
    ``short_line_length`` characters); ``char_dup_ratio`` (more than ``max_duplicate_char_ratio`` of
    the characters are in repeated lines); ``list_ratio`` (more than ``max_new_line_ratio`` newlines
    per word).

    With other languages than English, options that are left at their defaults are, as in FineWeb2,
    ``None`` for ``max_short_line_ratio`` and 0.1 for ``max_duplicate_char_ratio``, and 0.05 for
    ``min_line_punct_ratio``. ``max_new_line_ratio`` is 0.12 in languages without spaces, where each
    character is a word, so that lines of eight characters are a list, and 0.45 in Korean and
    Vietnamese.

    Source: Penedo et al. 2024, arXiv:2406.17557, section 3.6; ``FineWebQualityFilter`` of
    datatrove, exactly with ``words="spacy"`` (extra ``spacy``).

    Args:
        min_line_punct_ratio: Smallest share of lines that end in a mark to keep; ``None`` for no
            limit.
        line_punct_exclude_zero: Whether to keep texts without such a line.
        stop_chars: The marks; ``None`` for those that end a sentence in any script.
        max_short_line_ratio: Largest share of short lines to keep; ``None`` for no limit.
        short_line_length: Longest short line, in characters.
        max_duplicate_char_ratio: Largest share of characters in repeated lines to keep; ``None``
            for no limit.
        max_new_line_ratio: Largest number of newlines per word to keep; ``None`` for no limit.
        language: ISO 639-1 code of the texts, also with a region.
    """

    renamed_options: ClassVar = {
        "line_punct_thr": "min_line_punct_ratio",
        "short_line_thr": "max_short_line_ratio",
        "char_duplicates_ratio": "max_duplicate_char_ratio",
        "new_line_ratio": "max_new_line_ratio",
    }

    nothing = staticmethod(_no_lines)

    def __init__(
        self,
        *,
        min_line_punct_ratio: Fraction | None = 0.12,
        line_punct_exclude_zero: bool = False,
        stop_chars: Collection[str] | str | None = None,
        max_short_line_ratio: Fraction | None = 0.67,
        short_line_length: AtLeastZero = 30,
        max_duplicate_char_ratio: Fraction | None = 0.01,
        max_new_line_ratio: AtLeastZeroFloat | None = 0.3,
        language: str = "en",
        **kwargs: Any,
    ) -> None:
        super().__init__(language=language, **kwargs)
        limits = by_language(
            FineWebQuality.__init__,
            language,
            {
                "min_line_punct_ratio": min_line_punct_ratio,
                "max_short_line_ratio": max_short_line_ratio,
                "max_duplicate_char_ratio": max_duplicate_char_ratio,
                "max_new_line_ratio": max_new_line_ratio,
            },
        )
        min_line_punct_ratio, max_short_line_ratio, max_duplicate_char_ratio, max_new_line_ratio = (
            limits.values()
        )
        punct: Any = line_signals.line_punct_ratio
        if stop_chars is not None:
            punct = partial(line_signals.line_end_ratio, marks=tuple(stop_chars))
        short = partial(line_signals.short_line_ratio, length=short_line_length)
        dup = repetition_signals.char_dup_ratio
        newlines = self.of_words(word_signals.newlines_per_word)
        spared = 0.0 if line_punct_exclude_zero else None
        self.rules = [
            Rule(
                "line_punct_ratio", "line_punct_ratio", punct, min_line_punct_ratio, spared=spared
            ),
            Rule("short_line_ratio", "short_line_ratio", short, most=max_short_line_ratio),
            Rule("char_dup_ratio", "char_dup_ratio", dup, most=max_duplicate_char_ratio),
            Rule("list_ratio", "newlines_per_word", newlines, most=max_new_line_ratio),
        ]


class C4Paragraph(TextFilter, filters):
    """Keep texts whose third longest line has 200 characters or more.

    Reads ``input_key``; lines are the parts between newlines. The reason is ``< 3 paragraphs``.

    Source: the rule of mC4, Xue et al. 2021, arXiv:2010.11934; ``C4ParagraphFilter`` of datatrove.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        longest = line_signals.third_longest_line
        self.rules = [Rule("< 3 paragraphs", "third_longest_line", longest, 200)]
