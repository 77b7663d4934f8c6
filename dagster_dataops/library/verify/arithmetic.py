"""Exact values of sums such as ``3 * (1,200 - 5%)``, read by a small parser. Nothing is run."""

import re
from fractions import Fraction
from typing import Final, NoReturn

from dagster_dataops.foundation.override import override

_LONGEST: Final = 1000  # characters of a calculation
_DEEPEST: Final = 50  # parentheses in one another
_SHOWN: Final = 30  # characters of what cannot be read
_DIGITS: Final = 12  # of a value in a message
_LARGEST_WHOLE: Final = 10**15
_MARKS: Final[dict[int, str]] = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # of full width
    **dict.fromkeys(map(ord, "\u2212\u2010\u2011\u2012\u2013\uff0d"), "-"),
    **dict.fromkeys(map(ord, "\u00d7\u00b7\u22c5\u2217\uff58\uff38xX"), "*"),
    **dict.fromkeys(map(ord, "\u00f7\u2044\u2215\u2236"), "/"),
    **dict.fromkeys(map(ord, "\u00a0\u2009\u202f\t"), " "),
    0x066A: "%",
    0x2019: "'",
}
_BEFORE: Final = "+-$\u20ac\u00a3\u00a5"  # signs and currencies before a number
_SWAPPED: Final = str.maketrans(",.", ".,")
# Thousands are grouped by commas, spaces or apostrophes, or as in India: 12,34,567.
_NUMBER: Final = re.compile(
    r"(?P<whole>[0-9]{1,3}(?P<mark>[, '])[0-9]{3}(?:(?P=mark)[0-9]{3})*(?![0-9])"
    r"|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?![0-9])|[0-9]+|(?=\.[0-9]))"
    r"(?P<decimals>\.[0-9]*)?"
    r" *[$\u20ac\u00a3\u00a5]?"
)


class NoSumError(ValueError):
    """A text is no sum that can be computed.

    Attributes:
        kind: ``malformed`` or ``division_by_zero``.
    """

    def __init__(self, reason: str, kind: str = "malformed") -> None:
        super().__init__(reason, kind)
        self.kind = kind

    @override
    def __str__(self) -> str:
        return str(self.args[0])


def checked_sum(text: str, *, decimal_comma: bool = False) -> list[Fraction]:
    """Return the exact values of the sides of ``48/2=24``, at least two.

    Raises:
        NoSumError: A side is no sum, or there is no sign of equality.
    """
    if len(text) > _LONGEST:
        raise NoSumError(f"it has more than {_LONGEST:,} characters")
    read = text.translate(_MARKS)  # of the same length
    if "=" not in read:
        raise NoSumError("it has no '='")
    values, start = [], 0
    for side in read.split("="):
        signs = side.translate(_SWAPPED) if decimal_comma else side
        values.append(_Sum(signs, text[start : start + len(side)]).value())
        start += len(side) + 1
    return values


def shown_value(value: Fraction) -> str:
    """Return a value as a number of few digits: whole ones exactly, others by 12 digits."""
    if value.denominator == 1 and abs(value) < _LARGEST_WHOLE:
        return str(value.numerator)
    try:
        return f"{float(value):.{_DIGITS}g}"
    except OverflowError:
        return f"a number of {len(str(abs(value.numerator) // value.denominator))} digits"


class _Sum:
    """One side of a calculation: ``+`` and ``-`` bind less than ``*`` and ``/``, a sign most."""

    def __init__(self, text: str, written: str) -> None:
        self._text, self._written = text, written
        self._at = self._depth = 0

    def value(self) -> Fraction:
        """Return the value of the whole text."""
        value = self._terms()
        if self._text[self._at :].strip():
            self._refuse()
        return value

    def _terms(self) -> Fraction:
        value = self._factors()
        while sign := self._next("+-"):
            other = self._factors()
            value = value + other if sign == "+" else value - other
        return value

    def _factors(self) -> Fraction:
        value = self._signed()
        while sign := self._next("*/"):
            other = self._signed()
            if sign == "*":
                value *= other
            elif other:
                value /= other
            else:
                raise NoSumError("it divides by zero", "division_by_zero")
        return value

    def _signed(self) -> Fraction:
        negative = False
        while sign := self._next(_BEFORE):
            negative ^= sign == "-"
        value = self._atom()
        while self._next("%"):
            value /= 100
        return -value if negative else value

    def _atom(self) -> Fraction:
        if not self._next("("):
            return self._number()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NoSumError(f"it has more than {_DEEPEST} parentheses in one another")
        value = self._terms()
        if not self._next(")"):
            self._refuse()
        self._depth -= 1
        return value

    def _number(self) -> Fraction:
        match = _NUMBER.match(self._text, self._at)
        if match is None:
            self._refuse()
        self._at = match.end()
        whole = re.sub("[^0-9]", "", match["whole"])
        decimals = (match["decimals"] or ".")[1:]
        return Fraction(int(f"{whole}{decimals}"), 10 ** len(decimals))

    def _next(self, signs: str) -> str:
        """Return the next character, and go on behind it, if it is one of some signs; else ''."""
        while self._text[self._at : self._at + 1] == " ":
            self._at += 1
        sign = self._text[self._at : self._at + 1]
        if not sign or sign not in signs:
            return ""
        self._at += 1
        return sign

    def _refuse(self) -> NoReturn:
        rest = self._written[self._at :].strip()[:_SHOWN]
        raise NoSumError(f"it cannot be read at {rest!r}" if rest else "it is not complete")
