"""``verify.Calculations``: check the arithmetic that a solution writes beside its text."""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, TypeAlias

from annotated_types import Interval

from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.verify.arithmetic import NoSumError, checked_sum, shown_value
from dagster_dataops.library.verify.verdict import Verdict, verify
from dagster_dataops.records import Record

_Tolerance: TypeAlias = Annotated[float, Interval(ge=0, lt=1)]

_ANNOTATION: Final = re.compile(r"<<((?:(?!<<|>>)[^\n])*)(>>)?")
_SHOWN: Final = 80  # characters of an annotation


class Calculations(verify):
    """Check the calculations that a solution writes as ``<<48/2=24>>``, without running them.

    Reads ``input_key="text"`` and writes ``output_key="valid"``, whether all are right, and
    ``error_key="error"``, the first wrong one with what is wrong, or ``null``. The signs are
    ``+ - * / ( ) %``, also ``x``, ``\u00d7`` and ``\u00f7``; ``5%`` is ``0.05`` everywhere.
    Numbers may have a sign, decimals, groups of thousands (``1,200``, ``1 200``, ``1'200``,
    ``12,34,567``) and a currency sign ``$``, ``\u20ac``, ``\u00a3`` or ``\u00a5``, which does not
    count. With ``decimal_comma=True``, ``1.200,5`` is ``1200.5``. Values are computed exactly: a
    result that is rounded needs a ``tolerance``. All sides of ``6=2*3=6`` must be equal.

    What is between the signs and is no such sum, is not closed on its line, or divides by zero,
    counts as wrong. A text without an annotation is right, unless ``missing="wrong"``. The reasons
    of ``mode="drop"`` and ``"both"`` are those of the first wrong one: ``no_calculation``,
    ``malformed``, ``division_by_zero``, ``wrong``.

    Source: the annotations of GSM8K, Cobbe et al. 2021, arXiv:2110.14168, which a calculator
    fills in there.

    Args:
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the result, a boolean.
        error_key: Column of the first wrong calculation in words; ``None`` writes none.
        tolerance: Largest difference of equal values, as a share of the first one, 0 to 1.
        missing: What a text without an annotation is: ``right`` or ``wrong``.
        decimal_comma: Whether a comma comes before decimals, and dots group thousands.
        mode: ``tag`` writes the result, ``drop`` drops what fails, ``both`` does both.
    """

    def __init__(
        self,
        input_key: str = "text",
        output_key: str = "valid",
        error_key: str | None = "error",
        *,
        tolerance: _Tolerance = 0,
        missing: Literal["right", "wrong"] = "right",
        decimal_comma: bool = False,
        mode: str = "tag",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column = FieldKey(input_key)
        self._tolerance = Fraction(str(tolerance))
        self._missing, self._decimal_comma = missing, decimal_comma
        self._verdict = Verdict(mode, output_key, error_key)

    def forward(self, record: Record) -> Any:
        reason = "no_calculation" if self._missing == "wrong" else None
        for content, closed in _annotations(self._column.text(record)):
            reason = None
            if fault := self._fault(content, closed=closed):
                return self._verdict.of(record, *fault)
        return self._verdict.of(record, reason)

    def _fault(self, content: str, *, closed: bool) -> tuple[str, str] | None:
        """Return the reason and the error of an annotation that is not right."""
        shown = f"<<{content[:_SHOWN]}{'>>' if closed else ''}"
        if not closed:
            return "malformed", f"{shown}: it is not closed by '>>' on its line"
        try:
            first, *others = checked_sum(content, decimal_comma=self._decimal_comma)
        except NoSumError as error:
            return error.kind, f"{shown}: {error}"
        for other in others:
            if abs(first - other) > self._tolerance * abs(first):
                values = f"{shown_value(first)}, not {shown_value(other)}"
                return "wrong", f"{shown}: the value is {values}"
        return None


def _annotations(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the content of each annotation, and whether it is closed."""
    return ((match[1], match[2] is not None) for match in _ANNOTATION.finditer(text))
