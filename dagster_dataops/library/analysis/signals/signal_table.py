"""All signals of texts by name, for operators that let the user choose."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.analysis.signals import (
    character_signals,
    line_signals,
    repetition_signals,
    word_signals,
)
from dagster_dataops.library.analysis.word_splitting import Splitter

Signal: TypeAlias = Callable[[AnalyzedText], float]

_PLAIN: Final[Mapping[str, Signal]] = {
    "text_len": character_signals.text_len,
    "alnum_ratio": character_signals.alnum_ratio,
    "special_char_ratio": character_signals.special_char_ratio,
    "non_alpha_numeric_ratio": character_signals.non_alpha_numeric_ratio,
    "numbers_ratio": character_signals.numbers_ratio,
    "urls_ratio": character_signals.urls_ratio,
    "white_space_ratio": character_signals.white_space_ratio,
    "parentheses_ratio": character_signals.parentheses_ratio,
    "num_lines": line_signals.num_lines,
    "num_paragraphs": line_signals.num_paragraphs,
    "avg_line_length": line_signals.avg_line_length,
    "max_line_length": line_signals.max_line_length,
    "third_longest_line": line_signals.third_longest_line,
    "bullet_line_ratio": line_signals.bullet_line_ratio,
    "ellipsis_line_ratio": line_signals.ellipsis_line_ratio,
    "round_bullet_ratio": line_signals.round_bullet_ratio,
    "ellipsis_mark_ratio": line_signals.ellipsis_mark_ratio,
    "no_end_mark_ratio": line_signals.no_end_mark_ratio,
    "line_punct_ratio": line_signals.line_punct_ratio,
    "short_line_ratio": line_signals.short_line_ratio,
    "boilerplate_ratio": line_signals.boilerplate_ratio,
    "dup_para_frac": repetition_signals.dup_para_frac,
    "dup_para_char_frac": repetition_signals.dup_para_char_frac,
    "dup_line_frac": repetition_signals.dup_line_frac,
    "dup_line_char_frac": repetition_signals.dup_line_char_frac,
    "char_dup_ratio": repetition_signals.char_dup_ratio,
    "char_rep_ratio": repetition_signals.char_rep_ratio,
    "word_rep_ratio": repetition_signals.word_rep_ratio,
    "num_refined_words": word_signals.num_refined_words,
}
_OF_WORDS: Final[Mapping[str, Callable[..., float]]] = {
    "num_words": word_signals.num_words,
    "num_content_words": word_signals.num_content_words,
    "avg_content_word_length": word_signals.avg_content_word_length,
    "mean_word_length": word_signals.mean_word_length,
    "max_word_length": word_signals.max_word_length,
    "hash_word_ratio": word_signals.hash_word_ratio,
    "ellipsis_word_ratio": word_signals.ellipsis_word_ratio,
    "symbol_word_ratio": word_signals.symbol_word_ratio,
    "alpha_word_ratio": word_signals.alpha_word_ratio,
    "alphabetic_word_ratio": word_signals.alphabetic_word_ratio,
    "capital_word_ratio": word_signals.capital_word_ratio,
    "num_stop_words": word_signals.num_stop_words,
    "newlines_per_word": word_signals.newlines_per_word,
    "distinct_word_ratio": word_signals.distinct_word_ratio,
}
_OF_NGRAMS: Final[Mapping[str, tuple[Callable[..., float], range]]] = {
    "top_{}_gram": (repetition_signals.top_ngram_share, range(2, 5)),
    "duplicated_{}_n_grams": (repetition_signals.duplicate_ngram_share, range(5, 11)),
}


def signal_table(split: Splitter) -> dict[str, Signal]:
    """Return all signals by name."""
    table = dict(_PLAIN)
    table |= {name: partial(function, split=split) for name, function in _OF_WORDS.items()}
    for name, (function, sizes) in _OF_NGRAMS.items():
        table |= {name.format(n): partial(function, split=split, size=n) for n in sizes}
    return table
