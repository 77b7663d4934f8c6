"""Filters by the value of any field, by a pattern, or by a function."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.filters.comparison import Comparison
from dagster_dataops.library.filters.rules import Filter, Judgement, Rule, TextFilter, filters
from dagster_dataops.library.user_patterns import Engine, applied, compiled
from dagster_dataops.records import Record


class Field(Filter, filters):
    """Keep records whose field compares with a value.

    ``key`` is a column or a selector of one or several elements, which must all compare. ``op`` is
    ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``in``, ``not in`` (``value`` is a list),
    ``exists`` (``value`` False: is missing) or ``matches`` (``value`` is a regular expression that
    is found in the text). A missing field compares with nothing: the record is dropped, except for
    ``!=``, ``not in`` and ``exists`` with False. ``null`` is a value that exists; it is neither
    smaller nor larger than another. Values of types that have no order are an error of the record.

    Signal ``field_<key>``: whether it compares. Reason ``field_<key>``.

    Source: ``specified_field_filter``, ``specified_numeric_field_filter`` and ``suffix_filter`` of
    Data-Juicer; the threshold of LazyLLM's scores.

    Args:
        key: A column, or a selector.
        op: The comparison.
        value: The value to compare with.
    """

    def __init__(
        self,
        key: str,
        op: Literal[
            "==", "!=", "<", "<=", ">", ">=", "in", "not in", "exists", "matches"
        ] = "exists",
        value: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._comparison, self._name = Comparison(key, op, value), f"field_{key}"[:100]

    @override
    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        del thorough
        fits = known[self._name] if self._name in known else self._comparison.fits(record)
        return Judgement(None if fits else self._name, {self._name: fits})


class Regex(TextFilter, filters):
    """Drop texts in which a regular expression is found.

    Reads ``input_key``. ``keep="no_match"`` drops texts with a match, ``keep="match"`` those
    without. Signal ``regex_match`` (0 or 1); reason ``regex_match`` or ``no_regex_match``.

    Source: ``RegexFilter`` of datatrove.

    Args:
        pattern: A regular expression.
        keep: ``no_match`` or ``match``.
        engine: ``"re"`` is Python's; patterns with nested repetitions take exponential time there
            on some texts. ``"re2"`` always takes linear time, and has no look-around; it needs the
            extra ``re2``.
    """

    added_later = frozenset({"engine"})

    def __init__(
        self,
        pattern: str,
        *,
        keep: Literal["no_match", "match"] = "no_match",
        engine: Engine = "re",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._pattern = compiled(pattern, engine, "filters.Regex")
        if keep == "match":
            self.rules = [Rule("no_regex_match", "regex_match", self._matches, least=1)]
        else:
            self.rules = [Rule("regex_match", "regex_match", self._matches, most=0)]

    def _matches(self, text: AnalyzedText) -> int:
        return int(applied(self._pattern.search, text.text) is not None)


class Lambda(Filter, filters):
    """Keep records for which a function returns a true value.

    ``function`` takes the record, which it must not change. Signal ``lambda`` (True or False);
    reason ``lambda``.

    Source: ``LambdaFilter`` of datatrove.

    Args:
        function: The function, from a record to a truth value.
    """

    renamed_options: ClassVar = {"fn": "function"}

    def __init__(self, function: Callable[[Record], Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._fn = function

    @override
    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        del thorough
        fits = known["lambda"] if "lambda" in known else bool(self._fn(record))
        return Judgement(None if fits else "lambda", {"lambda": fits})
