r"""Compare answers part by part: tuples, intervals, sets, lists, matrices, unions, equations."""

import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias

from dagster_dataops.library.verify.number_forms import number_of, plain_answer

EqualValues: TypeAlias = Callable[[str, str, float], bool]
"""Compares two plain texts without parts, with a largest relative difference."""

_OPEN, _CLOSE = "([{", ")]}"
_DEEPEST: Final = 8
_MOST_PAIRED: Final = 8  # parts that are compared with each other
_VARIABLE: Final = re.compile(
    r"((?:[a-z]|\\(?:alpha|beta|gamma|delta|theta|lambda|mu|rho|sigma|phi|omega))"
    r"(?:_(?:\{\w+\}|\w))?(?:\([a-z]\))?|\([a-z](?:,[a-z]){1,4}\))(?:=|\\in(?![A-Za-z]) ?)"
)
_RELATION: Final = re.compile(r"[=<>≈]|\\(?:in|leq|geq|neq|approx|equiv)(?![A-Za-z])")
_MATRIX: Final = re.compile(r"\\begin\{([pbvbBV]?matrix)\}(.*)\\end\{\1\}", re.DOTALL)
_PM: Final = re.compile(r"\\pm(?![A-Za-z]) ?")
_UNION: Final = re.compile(r"\\cup(?![A-Za-z]) ?")


class _Parts(NamedTuple):
    """The parts of an answer; answers of different kinds are different."""

    kind: str
    items: list[str]
    ordered: bool


class AnswerComparison:
    """Compares answers; see ``verify.MathEqual``.

    Numbers are equal within a relative tolerance. ``equal_values`` compares parts that are no
    numbers; without it, they differ.
    """

    def __init__(self, tolerance: float, equal_values: EqualValues | None = None) -> None:
        self._tolerance, self._equal_values = tolerance, equal_values

    def equal(self, answer: str, reference: str) -> bool:
        """Return whether two answers are equal; an empty one equals none."""
        left, right = plain_answer(answer), plain_answer(reference)
        if not left.text or not right.text:
            return False
        if left.unit and right.unit and left.unit != right.unit:
            return False
        return self._same(left.text, right.text, _DEEPEST)

    def _same(self, left: str, right: str, depth: int) -> bool:
        if left == right:
            return True
        first, other = number_of(left), number_of(right)
        if first is not None and other is not None:
            return self._near(first, other)
        values = _values(left, right)
        if values != (left, right):
            return depth > 0 and self._same(*values, depth - 1)
        if first is not None or other is not None:
            text = left if first is None else right
            return not _parts(text) and self._same_values(left, right)
        return depth > 0 and self._same_structure(left, right, depth)

    def _same_structure(self, left: str, right: str, depth: int) -> bool:
        parts, others = _parts(left), _parts(right)
        if parts and others:
            return self._same_parts(parts, others, depth - 1)
        return not parts and not others and self._same_values(left, right)

    def _same_values(self, left: str, right: str) -> bool:
        equal = self._equal_values
        return equal is not None and equal(left, right, self._tolerance)

    def _near(self, first: Fraction, other: Fraction) -> bool:
        if first == other:
            return True
        largest = max(abs(first), abs(other))
        return bool(self._tolerance) and abs(first - other) <= Fraction(self._tolerance) * largest

    def _same_parts(self, left: _Parts, right: _Parts, depth: int) -> bool:
        if left.kind != right.kind or left.ordered != right.ordered:
            return False
        if not left.ordered and _keys(left) == _keys(right):
            return True
        if len(left.items) != len(right.items):
            return False
        if left.ordered:
            pairs = zip(left.items, right.items, strict=True)
            return all(self._same(first, other, depth) for first, other in pairs)
        return len(left.items) <= _MOST_PAIRED and self._paired(left.items, right.items, depth)

    def _paired(self, left: list[str], right: list[str], depth: int) -> bool:
        """Return whether each part of one side has a partner of its own on the other."""
        rest = list(right)
        for item in left:
            partner = next((place for place in rest if self._same(item, place, depth)), None)
            if partner is None:
                return False
            rest.remove(partner)
        return True


def _keys(parts: _Parts) -> Counter[str | Fraction] | set[str | Fraction]:
    """Return the parts, numbers by their value; those of a set count once."""
    values = ((number_of(item), item) for item in parts.items)
    keys = Counter(item if value is None else value for value, item in values)
    return set(keys) if parts.kind == "{}" else keys


def _values(left: str, right: str) -> tuple[str, str]:
    """Return what is behind ``x=`` if one side has no variable, or both have the same one."""
    first, other = _VARIABLE.match(left), _VARIABLE.match(right)
    if first and other:
        same = first[0] == other[0]
        values = (left[first.end() :], right[other.end() :]) if same else (left, right)
    elif first and not _RELATION.search(right):
        values = left[first.end() :], right
    elif other and not _RELATION.search(left):
        values = left, right[other.end() :]
    else:
        values = left, right
    if any(_RELATION.search(value) for value in values):
        return left, right
    inner = [_without_parentheses(value) for value in values]
    return inner[0], inner[1]


def _without_parentheses(text: str) -> str:
    if text[:1] == "(" and text[-1:] == ")" and _is_enclosed(text) and not _commas(text[1:-1]):
        return text[1:-1] or text
    return text


def _parts(text: str) -> _Parts | None:
    """Return the parts of an answer; ``None`` if it has none."""
    if not text:  # beside a comma at an end
        return None
    if matrix := _MATRIX.fullmatch(text):
        kind = "determinant" if matrix[1][0] in "vV" else "matrix"
        rows = [row.split("&") for row in matrix[2].removesuffix("\\\\").split("\\\\")]
        shape = ",".join(str(len(row)) for row in rows)
        return _Parts(f"{kind} {shape}", [cell for row in rows for cell in row], ordered=True)
    if len(sets := _split(text, _UNION)) > 1:
        return _Parts("union", sets, ordered=False)
    if text[0] in _OPEN and text[-1] in _CLOSE and _is_enclosed(text):
        inner = text[1:-1]
        items = _split(inner, _COMMA) if inner else []
        single = len(items) == 1 and text[0] != "{"
        return None if single else _Parts(text[0] + text[-1], items, ordered=text[0] != "{")
    return _solutions(text)


def _solutions(text: str) -> _Parts | None:
    """Return the parts of a list without brackets, and both values of a plus-minus."""
    items = _split(text, _COMMA)
    if len(items) == 1 and len(_PM.findall(text)) == 1:
        items = [_PM.sub(sign, text).removeprefix("+") for sign in "+-"]
    if len(items) == 1:
        return None
    names = sorted({match[1] for item in items if (match := _VARIABLE.match(item))})
    return _Parts(",".join(names) if len(names) > 1 else ",", items, ordered=False)


_COMMA: Final = re.compile("[,;]")


def _commas(text: str) -> bool:
    return len(_split(text, _COMMA)) > 1


def _is_enclosed(text: str) -> bool:
    """Return whether the first bracket is closed by the last character."""
    depth = 0
    for position, mark in enumerate(text):
        depth += (mark in _OPEN) - (mark in _CLOSE)
        if depth <= 0:
            return position == len(text) - 1
    return False


def _split(text: str, separator: re.Pattern[str]) -> list[str]:
    """Return the parts between separators outside of brackets."""
    if separator.search(text) is None:
        return [text]
    depths, depth = [], 0
    for mark in text:
        depth += (mark in _OPEN) - (mark in _CLOSE)
        depths.append(depth)
    separators = [match for match in separator.finditer(text) if depths[match.start()] == 0]
    starts, ends = (
        [0, *(separator.end() for separator in separators)],
        [separator.start() for separator in separators],
    )
    return [text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True)]
