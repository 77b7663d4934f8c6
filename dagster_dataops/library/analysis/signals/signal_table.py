"""All signals of texts by name, for operators that let the user choose."""

from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
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


def _named(module: ModuleType, names: str) -> dict[str, Callable[..., float]]:
    return {name: getattr(module, name) for name in names.split()}


_PLAIN: Final[Mapping[str, Signal]] = {
    **_named(
        character_signals,
        "text_len alnum_ratio special_char_ratio non_alpha_numeric_ratio numbers_ratio urls_ratio "
        "white_space_ratio parentheses_ratio",
    ),
    **_named(
        line_signals,
        "num_lines num_paragraphs avg_line_length max_line_length third_longest_line "
        "bullet_line_ratio ellipsis_line_ratio round_bullet_ratio ellipsis_mark_ratio "
        "no_end_mark_ratio line_punct_ratio short_line_ratio boilerplate_ratio",
    ),
    **_named(
        repetition_signals,
        "dup_para_frac dup_para_char_frac dup_line_frac dup_line_char_frac char_dup_ratio "
        "char_rep_ratio word_rep_ratio",
    ),
    **_named(word_signals, "num_refined_words"),
}
_OF_WORDS: Final = _named(
    word_signals,
    "num_words num_content_words avg_content_word_length mean_word_length max_word_length "
    "hash_word_ratio ellipsis_word_ratio symbol_word_ratio alpha_word_ratio alphabetic_word_ratio "
    "capital_word_ratio num_stop_words newlines_per_word distinct_word_ratio",
)
_OF_NGRAMS: Final[Mapping[str, tuple[Callable[..., float], range]]] = {
    "top_{}_gram": (repetition_signals.top_ngram_share, range(2, 5)),
    "duplicated_{}_n_grams": (repetition_signals.duplicate_ngram_share, range(5, 11)),
}


def signal_table(split: Splitter) -> dict[str, Signal]:
    """Return all signals by name, for a function that splits texts into words."""
    table = dict(_PLAIN)
    table |= {name: partial(function, split=split) for name, function in _OF_WORDS.items()}
    for name, (function, sizes) in _OF_NGRAMS.items():
        table |= {name.format(n): partial(function, split=split, size=n) for n in sizes}
    return table
