"""The base classes of filters: modes, and rules that compare signals of a text with thresholds."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from dagster_dataops.data import data_register
from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.analyzed_text import AnalyzedText, analyzed
from dagster_dataops.library.analysis.word_splitting import Splitter, words_function
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.filter_outcome import FilterOutcome
from dagster_dataops.library.filters.language_limits import words_of
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.records import Record

filters: Any = data_register.new_group("filters")

Signal: TypeAlias = Callable[[AnalyzedText], float]
Mode: TypeAlias = Literal["drop", "tag", "both"]

EMPTY: Final = "empty"
"""The reason of texts that have nothing to judge."""

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Rule(NamedTuple):
    """Drop a record for ``reason`` unless ``least <= value <= most``, or ``value == spared``.

    Attributes:
        reason: Name of the reason.
        name: Name of the signal.
        value: The signal, a function of what the filter judges.
        least: Smallest value to keep; ``None`` for no limit.
        most: Largest value to keep; ``None`` for no limit.
        spared: A value to keep in any case.
    """

    reason: str
    name: str
    value: Callable[[Any], float]
    least: float | None = None
    most: float | None = None
    spared: float | None = None


def bounds(
    name: str, value: Callable[[Any], float], least: float | None, most: float | None
) -> list[Rule]:
    """Return the two rules ``low_<name>`` and ``high_<name>`` of a signal."""
    return [
        Rule(f"low_{name}", name, value, least=least),
        Rule(f"high_{name}", name, value, most=most),
    ]


class Judgement(NamedTuple):
    """Findings of a filter about a record.

    Attributes:
        reason: Reason to drop it; ``None`` to keep it.
        signals: By name; empty if the mode needs none.
        changes: Columns to write in records that are kept, except in mode ``tag``.
    """

    reason: str | None
    signals: Mapping[str, Any] = _NOTHING
    changes: Record | None = None


class Filter(Operator):
    """The modes of all filters. A subclass defines `judge`.

    Args:
        mode: ``drop`` drops records. ``tag`` keeps all records, unchanged but for the signals and
            the reason. ``both`` drops records and writes the signals of those that are kept.
        stats_key: Column of the signals, a dict by name; signals of other filters there stay.
        reason_key: Column that ``tag`` writes: the reason for which ``drop`` would drop the record,
            or ``null``, in place of what is there. So tagging again gives the same as tagging once.
            Several filters that tag need keys of their own.
        reuse_stats: Use the signals that the record has, instead of computing them again. They are
            out of date if the text was changed after them.
    """

    def __init__(
        self,
        *,
        mode: Mode = "drop",
        stats_key: str = "stats",
        reason_key: str = "drop_reason",
        reuse_stats: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._outcome = FilterOutcome(mode, stats_key, reason_key)
        self._reused_key = stats_key if reuse_stats else None

    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        """Return the findings of the filter about a record, which is not changed.

        The signals ``known`` are used instead of computing them. With ``thorough``, all signals are
        computed, even if the first has a reason.
        """
        raise NotImplementedError

    def forward(self, record: Record) -> Any:
        outcome = self._outcome
        reused = None if self._reused_key is None else record.get(self._reused_key)
        known = reused if isinstance(reused, dict) else _NOTHING
        reason, signals, changes = self.judge(record, known, thorough=outcome.tags)
        if changes is not None and outcome.drops and reason is None:
            record.update(changes)
        return outcome.of(record, reason, signals)


class RuleFilter(Filter):
    """A filter by rules about signals of one subject, such as a text or an image.

    A subclass sets ``rules`` in ``__init__``, and defines `judge`.
    """

    rules: list[Rule]
    nothing: Callable[[Any], bool] | None = None
    """Whether there is nothing to judge; such records are dropped for the reason ``empty``."""

    def first_reason(self, subject: Any, known: Mapping[str, Any] = _NOTHING) -> str | None:
        """Return the first reason to drop a subject; ``None`` to keep it."""
        if self.nothing is not None and self.nothing(subject):
            return EMPTY
        last, measured = "", 0.0
        for reason, name, value, least, most, spared in self.rules:
            if least is None and most is None:
                continue
            if name != last:
                last, measured = name, known[name] if name in known else value(subject)
            low, high = least is not None and measured < least, most is not None and measured > most
            if (low or high) and measured != spared:
                return reason
        return None

    def judge_thoroughly(self, subject: Any, known: Mapping[str, Any] = _NOTHING) -> Judgement:
        """Return the first reason and all signals of a subject."""
        functions = {rule.name: rule.value for rule in self.rules}
        signals = {
            name: known[name] if name in known else value(subject)
            for name, value in functions.items()
        }
        return Judgement(self.first_reason(subject, signals), signals)


class TextFilter(RuleFilter):
    """A filter by rules about signals of one text.

    A subclass sets ``rules`` in ``__init__``.

    Args:
        input_key: Key of the text: a column, or a selector. Several texts are joined by newlines.
        **kwargs: See `Filter`.
    """

    def __init__(self, *, input_key: str = "text", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._column = FieldKey(input_key)

    @override
    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        text = analyzed(self._column.text(record))
        if thorough:
            return self.judge_thoroughly(text, known)
        return Judgement(self.first_reason(text, known))


class WordFilter(TextFilter):
    """A filter by rules about the words of a text.

    Args:
        words: How texts are split into words: ``whitespace`` (``regex`` in languages without
            spaces), ``regex``, ``spacy``, ``jieba``, ``mecab`` or a function.
        language: ISO 639-1 code of the texts.
        **kwargs: See `TextFilter`.
    """

    def __init__(
        self, *, words: str | Splitter = "whitespace", language: str = "en", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._split = words_function(words_of(words, language), language)

    def of_words(self, signal: Callable[..., float], **options: Any) -> Signal:
        """Return a function of a text alone, for a signal that splits texts into words."""
        return partial(signal, split=self._split, **options)

    def no_words(self, text: AnalyzedText) -> bool:
        """Return whether a text has no words."""
        return not text.split(self._split)


def no_text(text: AnalyzedText) -> bool:
    """Return whether a text has no characters."""
    return not text.text


def blank(text: AnalyzedText) -> bool:
    """Return whether a text has nothing but white space."""
    return not text.text or text.text.isspace()
