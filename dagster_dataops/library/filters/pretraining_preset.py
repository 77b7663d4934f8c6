"""``filters.Pretraining``: the filters of FineWeb as one operator."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.analyzed_text import analyzed
from dagster_dataops.library.analysis.word_splitting import Splitter
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.filters.c4_cleaning import C4Quality
from dagster_dataops.library.filters.published_rules import (
    FineWebQuality,
    GopherQuality,
    GopherRepetition,
)
from dagster_dataops.library.filters.rules import Filter, Judgement, filters
from dagster_dataops.operators.options.ranges import Fraction
from dagster_dataops.records import Record

_KNOWN_SCORE: Final = 0.65
_FOUND_SCORE: Final = 0.3  # scores of py3langid are lower than those of fastText


class Pretraining(Filter, filters):
    """Keep texts that FineWeb would keep: its chain of filters as one operator.

    Reads ``input_key`` and writes the text without the lines that C4's rules remove to
    ``output_key`` (by default, the same key). In this order, the first reason wins:

    1. ``language``: with ``languages``, such as ``["en"]``, the column ``language_key`` is none of
       them, or ``language_score_key`` is less than ``min_language_score``. `language.Identify`
       writes both.
    2. The reasons of `filters.GopherRepetition`.
    3. Those of `filters.GopherQuality`.
    4. Those of `filters.C4Quality` without ``filter_no_terminal_punct``, which removes lines.
    5. Those of `filters.FineWebQuality`, about the text that is left.

    A text is split into words once before and once after lines are removed. ``words`` and
    ``sentences`` are as in those filters; ``words="spacy", sentences="spacy"`` (extra ``spacy``)
    decide as datatrove 0.10. Modes ``tag`` and ``both`` write the signals of all filters, and
    ``tag`` leaves the text as it is.

    ``language`` chooses stop words, how words are split, and limits, as each of the filters
    describes; ``"en"``, the default, has those of FineWeb. It does not look at the language of a
    text: give ``languages``, too, or a filter for each language behind `language.Identify`.

    Source: Penedo et al. 2024, arXiv:2406.17557; the pipeline of FineWeb in datatrove.

    Args:
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the changed text; ``None`` writes it where it was read.
        languages: ISO 639-1 codes to keep; ``None`` for all.
        min_language_score: Smallest score of the language to keep; ``None`` for 0.65, as FineWeb,
            if the record has the score, and for 0.3 if it is found here, by py3langid.
        language_key: Column of the language.
        language_score_key: Column of its score.
        words: How texts are split into words: ``whitespace``, ``regex``, ``spacy``, ``jieba``,
            ``mecab`` or a function.
        sentences: How lines are split into sentences: ``rule``, ``newline``, ``spacy`` or a
            function.
        language: ISO 639-1 code of the texts, also with a region, such as ``pt-BR``.
    """

    renamed_options: ClassVar = {
        "lang_key": "language_key",
        "lang_score_key": "language_score_key",
        "min_lang_score": "min_language_score",
    }

    def __init__(
        self,
        *,
        input_key: str = "text",
        output_key: str | None = None,
        languages: Collection[str] | None = None,
        min_language_score: Fraction | None = None,
        language_key: str = "lang",
        language_score_key: str = "lang_score",
        words: str | Splitter = "whitespace",
        sentences: str | Splitter = "rule",
        language: str = "en",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._languages: Collection[str] | None = None
        self._least_score = min_language_score
        self._lang_key, self._score_key = language_key, language_score_key
        if languages is not None:
            from dagster_dataops.library.language.identification import Identify, wanted_languages

            self._languages = wanted_languages(languages)
            self._identify = Identify(
                input_key, language_key=language_key, language_score_key=language_score_key
            )
        self._column = FieldKey(input_key)
        split: Any = {"words": words, "language": language}
        self._before = [GopherRepetition(**split), GopherQuality(**split)]
        self._cleaning = C4Quality(
            input_key=input_key,
            output_key=output_key,
            filter_no_terminal_punct=False,
            sentences=sentences,
            language=language,
        )
        self._after = FineWebQuality(**split)

    @override
    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        del known  # one signal may be about the text before or after lines are removed
        reason = self._language_reason(record)
        if thorough:
            return self._judge_thoroughly(record, reason)
        text = analyzed(self._column.text(record))
        for part in self._before:
            reason = reason or part.first_reason(text)
        if reason is not None:
            return Judgement(reason)
        cleaned = self._cleaning.cleaned(text)
        reason = cleaned.reason or self._after.first_reason(analyzed(cleaned.text))
        return Judgement(reason, changes=self._cleaning.with_text(record, cleaned.text))

    def _judge_thoroughly(self, record: Record, reason: str | None) -> Judgement:
        text = analyzed(self._column.text(record))
        judgements = [part.judge_thoroughly(text) for part in self._before]
        cleaning = self._cleaning.judge(record, {}, thorough=True)
        left = self._cleaning.cleaned(text, thorough=True).text
        judgements += [cleaning, self._after.judge_thoroughly(analyzed(left))]
        signals = {name: value for part in judgements for name, value in part.signals.items()}
        reasons = [reason, *(part.reason for part in judgements)]
        first = next((reason for reason in reasons if reason is not None), None)
        return Judgement(first, signals, self._cleaning.with_text(record, left))

    def _language_reason(self, record: Record) -> str | None:
        if self._languages is None:
            return None
        least = _KNOWN_SCORE
        if self._lang_key not in record or self._score_key not in record:
            record, least = self._identify.forward(record.copy()), _FOUND_SCORE
        least = least if self._least_score is None else self._least_score
        score: Any = record[self._score_key]
        known = record[self._lang_key] in self._languages
        return None if known and score is not None and score >= least else "language"
