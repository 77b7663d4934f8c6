r"""Compare answers: numbers in their usual forms, and texts with LaTeX marks."""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Final

from dagster_dataops.library.option_values import needs_extra

_LONGEST_NUMBER: Final = 100  # characters; longer ones are compared as texts
_LARGEST_EXPONENT: Final = 1000
_LONGEST_SYMBOLIC: Final = 1000
_DROPPED: Final = re.compile(
    r"\\(?:left|right|displaystyle|[,;:! ])|\\?\$|\\[()\[\]]"
    r"|\^\{?\\circ\}?|°|(?<![0-9])\s+|\s+(?![0-9])"
)
_TEXT: Final = re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox)\{([^{}]*)\}")
_FRACTION: Final = re.compile(r"(-?)\\[dt]?frac\{?(-?[0-9.]+)\}?\{?(-?[0-9.]+)\}?")
_ESCAPED: Final = re.compile(r"\\([%{}])")
_THOUSANDS: Final = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_NUMBER: Final = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?([0-9]{1,5}))?", re.ASCII
)
_MARKS: Final = str.maketrans({"−": "-", "\u2013": "-", "，": ",", "（": "(", "）": ")"})
_OPEN, _CLOSE = "([{", ")]}"


def equal_answers(answer: str, reference: str, tolerance: float) -> bool:
    """Return whether two answers are equal; see ``verify.MathEqual``."""
    left, right = _plain(answer), _plain(reference)
    if not left or not right:
        return False
    if left == right or _equal_numbers(left, right, tolerance):
        return True
    parts = _parts(left), _parts(right)
    if len(parts[0]) == 1 or len(parts[0]) != len(parts[1]):
        return False
    return _brackets(left) == _brackets(right) and all(
        one == other or _equal_numbers(one, other, tolerance)
        for one, other in zip(*parts, strict=True)
    )


def _brackets(text: str) -> str:
    return text[0] + text[-1] if text[0] in _OPEN and text[-1] in _CLOSE else ""


def _equal_numbers(left: str, right: str, tolerance: float) -> bool:
    one, other = number_of(left), number_of(right)
    if one is None or other is None:
        return False
    return abs(one - other) <= Fraction(tolerance) * max(abs(one), abs(other))


def number_of(text: str) -> Fraction | None:
    """Return the number that a text is, exactly; ``None`` if it is none."""
    if len(text) > _LONGEST_NUMBER:
        return None
    if text.endswith("%"):
        value = number_of(text.removesuffix("%").removesuffix("\\"))
        return None if value is None else value / 100
    if fraction := _FRACTION.fullmatch(text):
        text = f"{fraction[1]}{fraction[2]}/{fraction[3]}"
        text = text.removeprefix("--")
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    upper, slash, lower = text.partition("/")
    value, divisor = _decimal(upper), _decimal(lower) if slash else Fraction(1)
    return None if value is None or not divisor else value / divisor


def _decimal(text: str) -> Fraction | None:
    number = _NUMBER.fullmatch(text)
    if number is None or int(number[1] or 0) > _LARGEST_EXPONENT:
        return None
    return Fraction(text if not text.endswith(".") else text[:-1])


def _plain(text: str) -> str:
    """Return an answer without marks that do not change its value."""
    text = _TEXT.sub(r"\1", text.translate(_MARKS))
    text = _DROPPED.sub("", _ESCAPED.sub(r"\1", text))
    return text.rstrip(".").casefold()


def _parts(text: str) -> list[str]:
    """Return the parts of a tuple, interval or set, without its brackets."""
    if _brackets(text):
        text = text[1:-1]
    ends = []
    depth = 0
    for position, mark in enumerate(text):
        depth += (mark in _OPEN) - (mark in _CLOSE)
        if mark == "," and depth == 0:
            ends.append(position)
    starts = [0, *(end + 1 for end in ends)]
    return [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]


def symbolic_comparison() -> Callable[[str, str], bool]:
    """Return a function that compares an answer with a reference by math-verify.

    Raises:
        MissingExtraError: It is not installed.
    """
    with needs_extra("verify.MathEqual with symbolic=True", "math"):
        from math_verify import parse, verify

    def equal(answer: str, reference: str) -> bool:
        if max(len(answer), len(reference)) > _LONGEST_SYMBOLIC or not answer or not reference:
            return False
        found = [parse(f"${text}$", parsing_timeout=None) for text in (answer, reference)]
        return bool(verify(found[1], found[0], timeout_seconds=None))

    return equal
