r"""``verify.BoxedAnswer`` and ``verify.MathEqual``: final answers of mathematical texts."""

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

from annotated_types import Interval

from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.library.verify.answer_structure import AnswerComparison
from dagster_dataops.library.verify.symbolic_values import limited, symbolic_comparison
from dagster_dataops.library.verify.verdict import Verdict, verify
from dagster_dataops.records import Record

_Tolerance: TypeAlias = Annotated[float, Interval(ge=0, lt=1)]

_BOX: Final = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])")
_BRACE: Final = re.compile(r"\\.|([{}])", re.DOTALL)
_BARE: Final = re.compile(r"[ \t]+(?![{ \t])([^\s$]+)")
_HASH: Final = re.compile(r"####[ \t]*([^\n]*)")
_AFTER: Final = ".,;:"  # behind an answer without braces


class BoxedAnswer(verify):
    r"""Write the final answer of a solution: the content of the last ``\boxed{...}``.

    Reads ``input_key="text"`` and writes ``output_key="answer"``; ``null`` if there is none.

    With ``style="boxed"``, the braces are matched, so that ``\boxed{\frac{1}{2}}`` is
    ``\frac{1}{2}``; ``\fbox{...}`` and ``\boxed 5`` (up to white space or ``$``) count as well. The
    last box that is complete is taken, and of nested boxes the inner one. With ``style="hash"``, it
    is the rest of the line after the last ``####``, as in GSM8K. White space at both ends is
    removed.

    Args:
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the answer.
        style: ``boxed``, or ``hash`` for ``####``.
    """

    def __init__(
        self,
        input_key: str = "text",
        output_key: str = "answer",
        style: str = "boxed",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        styles: dict[str, Callable[[str], str | None]] = {"boxed": _boxed, "hash": _hashed}
        check_choice("style", style, styles)
        self._answer = styles[style]
        self._column, self._written = FieldKey(input_key), output_key

    def forward(self, record: Record) -> Record:
        record[self._written] = self._answer(self._column.text(record))
        return record


def _hashed(text: str) -> str | None:
    last = max(_HASH.finditer(text), key=re.Match.start, default=None)
    return None if last is None else last[1].strip() or None


def _boxed(text: str) -> str | None:
    boxes = list(_BOX.finditer(text))
    if not boxes:
        return None
    ends = _brace_pairs(text)
    for box in reversed(boxes):
        brace = box.end()
        while text[brace : brace + 1] in {" ", "\t"}:
            brace += 1
        if text[brace : brace + 1] == "{":
            if brace in ends:
                return text[brace + 1 : ends[brace]].strip()
        elif bare := _BARE.match(text, box.end()):
            return bare[1].rstrip(_AFTER)
    return None


def _brace_pairs(text: str) -> dict[int, int]:
    """Return the position of the closing brace for each opening one that is closed."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for match in _BRACE.finditer(text):
        if match[1] == "{":
            opened.append(match.start())
        elif match[1] and opened:
            pairs[opened.pop()] = match.start()
    return pairs


class MathEqual(verify):
    r"""Compare an answer with a reference answer, as numbers if both are, otherwise as texts.

    Reads ``input_key="answer"`` and ``reference_key="reference"``, texts or numbers, and writes
    ``output_key="correct"``. A missing or empty answer is not correct.

    Numbers are compared exactly: ``1,000`` is ``1000``; ``0.50`` is ``1/2``, ``\frac{1}{2}`` and
    ``50%``; ``1 \frac{1}{2}`` is ``1.5``; ``1e3``, ``10^3`` and ``1 \times 10^3`` are ``1000``;
    ``0.\overline{3}`` is ``1/3``. ``tolerance=0`` is the largest relative difference. Dollar signs,
    ``\boxed``, ``\left``, ``\right``, ``\text`` (but not its content), a final dot, case, and
    spaces that are not between digits do not count. ``x=3`` is ``3``, ``x \in [1,3]`` is ``[1,3]``.
    A usual unit counts only if both have one: ``3 \text{ cm}`` is ``3``, not ``3 \text{ m}``.
    Tuples, intervals and matrices are equal if their parts are, in this order; sets, unions,
    solutions ``2,3`` and ``\pm 2`` in any order. Other answers are equal if the same text remains.

    With ``symbolic=True``, other answers are also read as expressions, equations or inequalities by
    math-verify (extra ``math``). They are equal if their difference is exactly zero, or is at most
    ``tolerance``: ``2\sqrt{2}`` is ``\sqrt{8}``, and ``(x+1)^2`` is ``x^2+2x+1``, but ``\sqrt{2}``
    is not ``1.4142136``. What math-verify says about their equality is not used: it rounds numbers.
    Expressions of more than 300 characters, with numbers of more than 40,000 bits, or that need
    more than 2,000,000 calls of functions differ.

    ``mode="tag"`` writes the result, ``"drop"`` drops records that are not correct for the reason
    ``not_equal``, ``"both"`` does both.

    Args:
        input_key: Key of the answer.
        reference_key: Key of the reference answer.
        output_key: Column of the result, a boolean.
        tolerance: Largest relative difference of equal numbers, 0 to 1.
        symbolic: Whether other answers are compared as expressions.
        mode: ``tag`` writes the result, ``drop`` drops what fails, ``both`` does both.
    """

    def __init__(
        self,
        input_key: str = "answer",
        reference_key: str = "reference",
        output_key: str = "correct",
        *,
        tolerance: _Tolerance = 0,
        symbolic: bool = False,
        mode: str = "tag",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._answer, self._reference = _value(input_key), _value(reference_key)
        self._symbolic = symbolic
        self._comparison = AnswerComparison(tolerance, symbolic_comparison() if symbolic else None)
        self._verdict = Verdict(mode, output_key, None)

    def forward(self, record: Record) -> Any:
        answer, reference = (_unboxed(read(record)) for read in (self._answer, self._reference))
        equal = partial(self._comparison.equal, answer, reference)
        correct = limited(equal) if self._symbolic else equal()
        return self._verdict.of(record, None if correct else "not_equal")


def _unboxed(answer: str) -> str:
    """Return the content of the last box, or the answer if it has none."""
    return (_boxed(answer) or answer) if _BOX.search(answer) else answer


def _value(key: str) -> Callable[[Record], str]:
    """Return a function that reads an answer as a text; a number counts as its text."""
    column = FieldKey(key)

    def read(record: Record) -> str:
        values = column.present(record)
        if len(values) == 1 and type(values[0]) in {int, float}:
            return repr(values[0])
        return column.text(record)

    return read
