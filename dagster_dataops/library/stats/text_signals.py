"""``stats.Signals``: measure texts without dropping any."""

from collections.abc import Sequence
from typing import Any

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.analyzed_text import analyzed
from dagster_dataops.library.analysis.signals.signal_table import signal_table
from dagster_dataops.library.analysis.word_splitting import Splitter, words_function
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.filter_outcome import FilterOutcome
from dagster_dataops.library.stats.summaries import stats
from dagster_dataops.records import Record


class Signals(stats):
    """Write signals of the quality of a text, such as lengths, shares and repetition.

    Reads ``input_key`` and writes numbers by name into the dict in ``stats_key``; other signals
    there stay. ``signals`` are names, or ``"all"``: those of characters (``text_len``,
    ``alnum_ratio``, ``special_char_ratio``, ``non_alpha_numeric_ratio``, ``numbers_ratio``,
    ``urls_ratio``, ``white_space_ratio``, ``parentheses_ratio``), lines (``num_lines``,
    ``num_paragraphs``, ``avg_line_length``, ``max_line_length``, ``third_longest_line``,
    ``bullet_line_ratio``, ``ellipsis_line_ratio``, ``round_bullet_ratio``, ``ellipsis_mark_ratio``,
    ``no_end_mark_ratio``, ``line_punct_ratio``, ``short_line_ratio``, ``boilerplate_ratio``), words
    (``num_words``, ``num_content_words``, ``num_refined_words``, ``avg_content_word_length``,
    ``mean_word_length``, ``max_word_length``, ``hash_word_ratio``, ``ellipsis_word_ratio``,
    ``symbol_word_ratio``, ``alpha_word_ratio``, ``alphabetic_word_ratio``, ``num_stop_words``,
    ``newlines_per_word``, ``distinct_word_ratio``) and repetition (``dup_para_frac``,
    ``dup_para_char_frac``, ``dup_line_frac``, ``dup_line_char_frac``, ``char_dup_ratio``,
    ``char_rep_ratio``, ``word_rep_ratio``, ``top_<2 to 4>_gram``, ``duplicated_<5 to
    10>_n_grams``). They are those of the filters with default options; ``words`` is as there.

    Source: the quality signals of RedPajama v2, ``DocStats``, ``LineStats`` and ``WordStats`` of
    datatrove, the ``Analyzer`` of Data-Juicer.

    Args:
        signals: Names of signals, or ``all``.
        input_key: Key of the text: a column, or a selector.
        stats_key: Column of the signals, a dict.
        words: How texts are split into words: ``whitespace``, ``regex``, ``spacy``, ``jieba``,
            ``mecab`` or a function.
        language: ISO 639-1 code for ``words="spacy"``.
    """

    def __init__(
        self,
        signals: Sequence[str] | str = "all",
        *,
        input_key: str = "text",
        stats_key: str = "stats",
        words: str | Splitter = "whitespace",
        language: str = "en",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        table = signal_table(words_function(words, language))
        chosen = table if signals == "all" else signals
        unknown = [name for name in chosen if name not in table]
        if unknown or isinstance(chosen, str):
            msg = f"signals={signals!r}: use 'all', or a list of {', '.join(table)}"
            raise DefinitionError(msg)
        self._signals = {name: table[name] for name in chosen}
        self._column = FieldKey(input_key)
        self._outcome = FilterOutcome("both", stats_key)

    def forward(self, record: Record) -> Any:
        text = analyzed(self._column.text(record))
        signals = {name: signal(text) for name, signal in self._signals.items()}
        return self._outcome.of(record, None, signals)
