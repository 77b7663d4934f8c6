r"""Compare expressions: read by math-verify, and equal only if their difference is exactly zero."""

import math
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.library.verify.answer_structure import EqualValues

_LONGEST: Final = 300  # characters
_MOST_BITS: Final = 40_000  # of a number
_MOST_NODES: Final = 300
_MOST_CALLS: Final = 2_000_000  # of functions, for one answer: a few seconds
_DIGITS: Final = 60
_NOISE: Final = 20  # digits that a computation may lose

# The commands of expressions; an answer with another one is compared as a text.
_COMMANDS: Final = frozenset(
    """
    frac sqrt pi cdot times div pm sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log
    ln exp binom infty lvert rvert vert alpha beta gamma delta epsilon theta lambda mu nu rho sigma
    tau phi omega Gamma Delta Theta Lambda Sigma Phi Omega leq geq
    """.split()  # noqa: SIM905 - a list of words is easier to read
)
_COMMAND: Final = re.compile(r"\\([A-Za-z]+|.)", re.DOTALL)
_LETTER: Final = re.compile("[A-Za-z]")
_WORD: Final = re.compile(r"[A-Za-z]{3,}")
_PLAIN_ROOT: Final = re.compile(r"(?<![A-Za-z\\])sqrt\(([^()]*)\)")
_PLAIN_NAME: Final = re.compile(r"(?<![A-Za-z\\])(pi|sin|cos|tan|log|ln|exp)(?![A-Za-z])")
_ROOT_OF_DIGIT: Final = re.compile(r"\\sqrt ?([0-9a-z])")
_TOO_LARGE: Final = re.compile(
    r"\^\{?[+-]?[0-9]{5}|[0-9]{5}!|[^0-9]!|binom\{?[0-9]{4}|\^[0-9a-z]\^"
)
_CAPITAL: Final = re.compile(r"\\[A-Z][a-z]*")
# Not read as an expression: an improper mixed number, the numbers of a date, two numbers, and a
# number with a base.
_UNCLEAR: Final = re.compile(
    r"[0-9] ?\\frac ?\{?[0-9]|(?<![0-9.])0[0-9]|(?<![_0-9])[0-9]+ +[0-9]|[0-9)}\]!] ?_"
)
_CHARACTERS: Final = re.compile(r"[A-Za-z0-9+\-*/^_(){}\[\].!|=<> \\]*", re.ASCII)
_CONSTANTS: Final = frozenset("ei")
_RELATION: Final = re.compile(r"=|<|>|\\leq(?![A-Za-z]) ?|\\geq(?![A-Za-z]) ?")
_SWAPPED: Final = {">": "<", r"\geq": r"\leq"}
# Values of the variables at which expressions are compared first.
_POINTS: Final = ((7, 3), (-11, 5), (13, 17), (-2, 19))


class _TooLongError(Exception):
    """A comparison takes too many steps."""


def symbolic_comparison() -> EqualValues:
    """Return a function that compares two plain texts as expressions."""
    with needs_extra("verify.MathEqual with symbolic=True", "math"):
        import math_verify  # noqa: F401
    return _equal


def limited(compare: Callable[[], bool]) -> bool:
    """Return the result of a comparison; ``False`` if it takes too many steps.

    Steps are calls of functions, counted in this thread. So the result depends neither on the speed
    of the machine nor on how many threads there are, other than with a limit of time.
    """
    _parsed("1")  # loads what math-verify loads on first use
    left = _MOST_CALLS
    before = sys.getprofile()

    def count(frame: FrameType, event: Any, argument: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise _TooLongError
        if before is not None:
            before(frame, event, argument)

    sys.setprofile(count)
    try:
        return compare()
    except (_TooLongError, RecursionError, MemoryError):
        return False
    finally:
        sys.setprofile(before)


def _equal(answer: str, reference: str, tolerance: float) -> bool:
    left, right = _sides(answer), _sides(reference)
    if left is None or right is None or left[0] != right[0]:
        return False
    if set(_CAPITAL.findall(answer)) != set(_CAPITAL.findall(reference)):
        return False  # math-verify reads them in lower case
    values = [_value(text) for text in (*left[1:], *right[1:])]
    if any(value is None for value in values):
        return False
    if not left[0]:
        return _same_value(values[0], values[2], tolerance)
    return _same_relation(left[0], values[0] - values[1], values[2] - values[3])


def _sides(text: str) -> tuple[str, str, str] | None:
    """Return the relation, with ``<`` for ``>``, and what is on its left and right."""
    relations = list(_RELATION.finditer(text))
    if not relations:
        return "", text, "0"
    if len(relations) > 1:
        return None
    sign = relations[0][0].strip()
    sides = text[: relations[0].start()], text[relations[0].end() :]
    if sign in _SWAPPED:
        return _SWAPPED[sign], sides[1], sides[0]
    return sign, *sides


def _same_relation(sign: str, left: Any, right: Any) -> bool:
    """Return whether one difference is a multiple of the other, a positive one for inequalities."""
    import sympy

    if not left.free_symbols or left.free_symbols != right.free_symbols:
        return False
    factor = sympy.simplify(left / right)
    if not factor.is_number or not factor.is_finite or factor.is_zero:
        return False
    return bool(factor.is_positive) or (sign == "=" and bool(factor.is_real))


def _value(text: str) -> Any:
    """Return the expression that a text is, with exact numbers; ``None`` if it is none."""
    import sympy

    text = _PLAIN_NAME.sub(r"\\\1 ", _PLAIN_ROOT.sub(r"\\sqrt{\1}", text))
    text = _ROOT_OF_DIGIT.sub(r"\\sqrt{\1}", text)
    if not _is_readable(text):
        return None
    expression = _parsed(text)
    if not isinstance(expression, sympy.Expr) or not _is_small(expression):
        return None
    names = "".join(map(str, expression.free_symbols))
    if not _CONSTANTS.union(names).issuperset(_LETTER.findall(_COMMAND.sub("", text))):
        return None  # a letter was taken for a unit
    expression = expression.subs(
        {symbol: sympy.I for symbol in expression.free_symbols if str(symbol) == "i"}
    )
    exact = expression.replace(
        lambda part: isinstance(part, sympy.Float), lambda part: sympy.Rational(str(part))
    ).doit()
    return exact if exact.is_finite is not False and not exact.has(sympy.nan) else None


def _is_readable(text: str) -> bool:
    commands = _COMMAND.findall(text)
    letters = _COMMAND.sub(" ", text)
    alone = text.isalpha() and len(text) > 1 and not set(text) <= set("xyz")
    return (
        len(text) <= _LONGEST
        and _COMMANDS.issuperset(commands)
        and not alone
        and _CHARACTERS.fullmatch(text) is not None
        and not _UNCLEAR.search(text)
        and not _WORD.search(letters)
        and not _TOO_LARGE.search(text)
    )


def _parsed(text: str) -> Any:
    from math_verify import LatexExtractionConfig, parse

    form = [LatexExtractionConfig()]
    expressions = parse(
        f"${text}$", form, fallback_mode="no_fallback", parsing_timeout=None, raise_on_error=False
    )
    return expressions[0] if expressions else None


def _is_small(expression: Any) -> bool:
    """Return whether the numbers in an expression can be computed."""
    import sympy

    nodes = list(sympy.preorder_traversal(expression))
    return len(nodes) <= _MOST_NODES and all(map(_is_small_number, nodes))


def _is_small_number(node: Any) -> bool:
    import sympy

    exponent = node.exp if isinstance(node, (sympy.Pow, sympy.exp)) else None
    if exponent is None or exponent.free_symbols:
        return True
    if exponent.has(sympy.Pow, sympy.exp, sympy.factorial, sympy.binomial):
        return False
    power = math.prod(abs(number.p) or 1 for number in _numbers(exponent))
    bits = sum(abs(number.p).bit_length() + number.q.bit_length() for number in _numbers(node.base))
    return bool(power * (bits + 1) <= _MOST_BITS)


def _numbers(expression: Any) -> Iterator[Any]:
    import sympy

    nodes = sympy.preorder_traversal(expression)
    return (node for node in nodes if isinstance(node, sympy.Rational))


def _same_value(left: Any, right: Any, tolerance: float) -> bool:
    import sympy

    if left == right:
        return True
    if tolerance and not (left.free_symbols or right.free_symbols):
        return _is_near(left, right, tolerance)
    difference = left - right
    if not all(_is_near(*both, 0) for both in _at_points(left, right)):
        return False
    if difference.expand() == 0 or sympy.simplify(difference) == 0:
        return True
    return bool(sympy.simplify(sympy.factor(difference, deep=True)) == 0)


def _at_points(left: Any, right: Any) -> Iterator[tuple[Any, Any]]:
    import sympy

    names = sorted(left.free_symbols | right.free_symbols, key=str)
    for number, (value, divisor) in enumerate(_POINTS if names else _POINTS[:1]):
        point = {
            name: sympy.Rational(value + place * (number + 2), divisor + place)
            for place, name in enumerate(names)
        }
        yield left.subs(point), right.subs(point)


def _is_near(left: Any, right: Any, tolerance: float) -> bool:
    """Return whether two numbers agree, up to a relative difference or all digits computed."""
    size = max(abs(left.evalf(_DIGITS)), abs(right.evalf(_DIGITS)))
    if not size.is_number or not size.is_finite:
        return bool(left == right)
    limit = size * (tolerance or 10 ** (_NOISE - _DIGITS))
    return bool(abs((left - right).evalf(_DIGITS)) <= limit)
