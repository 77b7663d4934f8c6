"""Filters by the value of any field, by a pattern, or by a function."""

from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any, ClassVar, Final, Literal

from typing_extensions import override

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.filters.rules import Filter, Judgement, Rule, TextFilter, filters
from dagster_dataops.library.user_patterns import Engine, applied, compiled
from dagster_dataops.records import Record

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "in": lambda item, value: item in value,
    "not in": lambda item, value: item not in value,
}


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
        self._op, self._value = op, _checked_value(op, value)
        self._field, self._name = FieldKey(key), f"field_{key}"[:100]

    @override
    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        del thorough
        fits = known[self._name] if self._name in known else self._fits(record)
        return Judgement(None if fits else self._name, {self._name: fits})

    def _fits(self, record: Record) -> bool:
        value = self._field.present(record)
        if self._op == "exists":
            return bool(value) == (self._value is not False)
        if not value:
            return self._op in {"!=", "not in"}
        return all(map(self._compares, value))

    def _compares(self, value: Any) -> bool:
        if self._op == "matches":
            return isinstance(value, str) and self._value.search(value) is not None
        if value is None and self._op in {"<", "<=", ">", ">="}:
            return False
        return bool(_COMPARISONS[self._op](value, self._value))


def _checked_value(op: str, value: Any) -> Any:
    """Return the value to compare with, a pattern compiled.

    Raises:
        DefinitionError: The operation cannot use it.
    """
    if op == "matches":
        return compiled(value)
    if op in {"in", "not in"} and not isinstance(value, (list, tuple, set, frozenset, str)):
        msg = f"value of op {op!r} must be a list; got {type(value).__name__}"
        raise DefinitionError(msg)
    return value


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
