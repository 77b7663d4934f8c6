"""`RecordCondition`: a condition that chooses the records of a result to process again.

A condition is text such as ``drop_reason == 'timeout' or result.score < 0.5``. It is parsed, never
run as code. Names are:

* ``drop_reason``, ``error_type`` and ``error`` (its message), each ``null`` if there is none;
  ``dropped`` and ``failed``, which are true or false;
* ``result.COLUMN``, a column of the result lines that the record became;
* ``COLUMN`` or ``input.COLUMN``, a column of the input record. Inner values have dots, as in
  ``meta.lang``, elements of lists their index, as in ``messages.0.role``. Names with other
  characters are in backquotes, and those that are a word in other letters, such as ``NOT``.

A record with several values for a name, such as those of two result lines, fulfils a comparison if
one of them does. ``!=`` and ``not in`` are the opposite of ``==`` and ``in``.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from dagster_dataops.errors import ConditionSyntaxError
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.options.signature import nearest

FACTS: Final = ("drop_reason", "dropped", "error", "error_type", "failed")
INPUT: Final = "input"
RESULT: Final = "result"
_MOST_CHARACTERS: Final = 4000
_MOST_NESTED: Final = 50
_WORDS: Final = ("and", "or", "not", "in", "contains", "matches")
_CONSTANTS: Final[dict[str, Any]] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
}
# By their small letters. A column such as `NULL` needs backquotes.
_SPELLED: Final = {word: word for word in (*_WORDS, "true", "false", "null")} | {"none": "null"}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_TOKEN: Final = re.compile(
    r"""(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?!\w)
    |(?P<name>(?:[^\W\d]\w*|`[^`]+`)(?:\.(?:\w+|`[^`]+`))*)
    |(?P<sign>==|!=|<=|>=|<|>|\(|\)|\[|\]|,)""",
    re.VERBOSE | re.DOTALL,
)
_SEGMENT: Final = re.compile(r"`[^`]+`|[^.`]+")
_PLAIN_SEGMENT: Final = re.compile(r"\w+")
_REPEATED: Final = re.compile(r"[*+]|\{\d*,\}")


class RecordFacts(NamedTuple):
    """An input record and its outcome.

    Attributes:
        record: The input record; empty if the line is no record.
        lines: Its result records.
        reasons: The reasons why it was dropped; an empty text for a drop without a reason.
        error: Its row in the error file, if it failed.
    """

    record: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]] = ()
    reasons: Sequence[str] = ()
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Name:
    """A name in a condition.

    Attributes:
        side: ``input``, ``result``, or empty for a fact about the outcome.
        path: The keys, from the outermost on.
    """

    side: str
    path: tuple[str, ...]

    @override
    def __str__(self) -> str:
        keys = ".".join(map(_shown_key, self.path))
        return f"{self.side}.{keys}" if self.side else keys

    def values(self, facts: RecordFacts) -> list[Any]:
        """Return the values of a record; at least one, which may be ``None``."""
        if not self.side:
            return _FACT[self.path[0]](facts) or [None]
        return self.present(facts) or [None]

    def present(self, facts: RecordFacts) -> list[Any]:
        """Return the values of a column in the records that have it."""
        records = [facts.record] if self.side == INPUT else facts.lines
        return [value for record in records for value in _selected(record, self.path)]


@dataclass(frozen=True)
class Literal:
    """A constant: a text, number, boolean, ``None``, or a tuple of these."""

    value: Any

    @override
    def __str__(self) -> str:
        if isinstance(self.value, tuple):
            return f"[{', '.join(str(Literal(member)) for member in self.value)}]"
        if isinstance(self.value, str):
            return _quoted(self.value)
        return json.dumps(self.value)

    def values(self, _facts: RecordFacts) -> list[Any]:
        """Return the value."""
        return [list(self.value) if isinstance(self.value, tuple) else self.value]


Operand: TypeAlias = Name | Literal


@dataclass(frozen=True)
class Comparison:
    """Two operands and the sign or word between them."""

    left: Operand
    sign: str
    right: Operand

    @override
    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"

    def holds(self, facts: RecordFacts) -> bool:
        """Return whether one pair of values fulfils it."""
        opposite = _OPPOSITES.get(self.sign)
        fulfils = _FULFILS[opposite or self.sign]
        rights = self.right.values(facts)
        result = any(fulfils(left, right) for left in self.left.values(facts) for right in rights)
        return result is (opposite is None)

    def names(self) -> Iterator[Name]:
        """Yield its names."""
        return (operand for operand in (self.left, self.right) if isinstance(operand, Name))


@dataclass(frozen=True)
class Truth:
    """A name alone: true unless its value is false, null, 0 or empty."""

    name: Name

    @override
    def __str__(self) -> str:
        return str(self.name)

    def holds(self, facts: RecordFacts) -> bool:
        """Return whether a value is true."""
        return any(map(bool, self.name.values(facts)))

    def names(self) -> Iterator[Name]:
        """Yield its name."""
        yield self.name


@dataclass(frozen=True)
class Negation:
    """The opposite of a condition."""

    part: "Test"

    @override
    def __str__(self) -> str:
        return f"not ({self.part})"

    def holds(self, facts: RecordFacts) -> bool:
        """Return whether the part does not hold."""
        return not self.part.holds(facts)

    def names(self) -> Iterator[Name]:
        """Yield the names in its part."""
        return self.part.names()


@dataclass(frozen=True)
class Joined:
    """Conditions joined by ``and`` or ``or``."""

    word: str
    parts: "tuple[Test, ...]"

    @override
    def __str__(self) -> str:
        return f" {self.word} ".join(
            f"({part})" if isinstance(part, Joined) else str(part) for part in self.parts
        )

    def holds(self, facts: RecordFacts) -> bool:
        """Return whether all parts hold, or one of them."""
        every = all if self.word == "and" else any
        return every(part.holds(facts) for part in self.parts)

    def names(self) -> Iterator[Name]:
        """Yield the names in its parts."""
        return (name for part in self.parts for name in part.names())


Test: TypeAlias = Comparison | Truth | Negation | Joined


@dataclass(frozen=True)
class RecordCondition:
    """A condition on an input record and its outcome."""

    test: Test

    @classmethod
    def parse(cls, text: str) -> "RecordCondition":
        """Parse a condition.

        Raises:
            ConditionSyntaxError: The text is no condition; the error names position and word.
        """
        if not text.strip():
            raise ConditionSyntaxError(text, 1, "a condition is expected")
        if len(text) > _MOST_CHARACTERS:
            reason = f"a condition has at most {_MOST_CHARACTERS:,} characters"
            raise ConditionSyntaxError(f"{text[:60]}...", _MOST_CHARACTERS + 1, reason)
        return cls(_Parser(text).parse())

    @override
    def __str__(self) -> str:
        return str(self.test)

    @property
    def columns(self) -> list[Name]:
        """The columns that it reads, each once."""
        return [name for name in dict.fromkeys(self.test.names()) if name.side]

    def reads(self, side: str) -> bool:
        """Return whether it reads a column of a side, ``input`` or ``result``."""
        return any(name.side == side for name in self.columns)

    def holds(self, facts: RecordFacts) -> bool:
        """Return whether it holds for a record."""
        return self.test.holds(facts)


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Parser:
    """Reads one condition from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0
        self._depth = 0

    def parse(self) -> Test:
        test = self._any()
        if self._token.kind != "end":
            self._refuse("`and` or `or` is expected", [*_WORDS[:2]])
        return test

    def _split(self) -> Iterator[_Token]:
        at = 0
        while at < len(self._text):
            if self._text[at].isspace():
                at += 1
                continue
            match = _TOKEN.match(self._text, at)
            if match is None:
                reason = f"{self._text[at : at + 20]!r} is no name, text, number or sign"
                hint = {"=": "; write == to compare", "&": "; write and", "|": "; write or"}
                raise self._error(at, reason + hint.get(self._text[at], ""))
            kind, word = str(match.lastgroup), match[0]
            yield _Token("word" if kind == "name" and word in _WORDS else kind, word, at)
            at = match.end()
        yield _Token("end", "", len(self._text))

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _takes(self, *texts: str) -> str:
        """Return the next sign or word and pass it, if it is one of these; else empty text."""
        token = self._token
        if token.kind not in {"sign", "word"} or token.text not in texts:
            return ""
        self._next += 1
        return token.text

    def _any(self) -> Test:
        return self._joined("or", self._all)

    def _all(self) -> Test:
        return self._joined("and", self._one)

    def _joined(self, word: str, part: Callable[[], Test]) -> Test:
        parts = [part()]
        while self._takes(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def _one(self) -> Test:
        if self._takes("not"):
            return Negation(self._nested(self._one))
        if self._takes("("):
            test = self._nested(self._any)
            if not self._takes(")"):
                self._refuse("`)` is expected", [])
            return test
        return self._comparison()

    def _nested(self, part: Callable[[], Test]) -> Test:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise self._error(self._token.at, f"it is nested more than {_MOST_NESTED} deep")
        test = part()
        self._depth -= 1
        return test

    def _comparison(self) -> Test:
        left = self._operand()
        sign = self._expected_in() if self._takes("not") else self._takes(*_FULFILS, *_OPPOSITES)
        if not sign:
            if isinstance(left, Name):
                if self._token.kind == "name":  # such as `text contain 'a'`
                    self._refuse("an operator is expected", _WORDS)
                return Truth(left)
            self._refuse("an operator such as == is expected", _WORDS)
        at = self._token.at
        right = self._operand()
        self._check(sign, right, at)
        return Comparison(left, sign, right)

    def _expected_in(self) -> str:
        if not self._takes("in"):
            self._refuse("`in` is expected after `not`", ["in"])
        return "not in"

    def _check(self, sign: str, right: Operand, at: int) -> None:
        value = right.value if isinstance(right, Literal) else None
        if sign == "matches":
            if not isinstance(value, str):
                raise self._error(at, "`matches` needs a regular expression in quotes")
            try:
                re.compile(value)
            except re.error as error:
                reason = f"{value!r} is no regular expression: {error}"
                raise self._error(at, reason) from None
            if _is_slow(value):
                reason = f"{value!r} repeats a repetition, which may take very long"
                raise self._error(at, reason)
            return
        listed = isinstance(right, Name) or isinstance(value, (tuple, str))
        if sign in {"in", "not in"} and not listed:
            raise self._error(at, f"`{sign}` needs a list, such as ['a', 'b']")

    def _operand(self) -> Operand:
        token = self._token
        if token.kind == "name":
            self._next += 1
            if token.text in _CONSTANTS:
                return Literal(_CONSTANTS[token.text])
            if (word := _SPELLED.get(token.text.lower())) and token.text != word:
                hint = f"write {word!r} in small letters, or a column as `{token.text}`"
                raise self._error(token.at, hint)
            if self._token.text == "(":
                raise self._error(token.at, f"{token.text!r} is called, and there is no function")
            return _name_of(token.text)
        if self._takes("["):
            return Literal(tuple(self._members("]")))
        if self._takes("("):
            return Literal(tuple(self._members(")")))
        return Literal(self._constant())

    def _members(self, end: str) -> Iterator[Any]:
        while not self._takes(end):
            yield self._constant()
            if not self._takes(",") and self._token.text != end:
                self._refuse(f"`,` or `{end}` is expected", [])

    def _constant(self) -> Any:
        token = self._token
        is_constant = token.kind == "name" and token.text in _CONSTANTS
        if token.kind not in {"text", "number"} and not is_constant:
            self._refuse("a name, text or number is expected", list(_CONSTANTS))
        self._next += 1
        if is_constant:
            return _CONSTANTS[token.text]
        if token.kind == "text":
            return _unquoted(token.text)
        whole = re.fullmatch(r"-?\d+", token.text)
        return int(token.text) if whole else float(token.text)

    def _refuse(self, expected: str, known: Sequence[str]) -> Any:
        """Raise the error that something else is expected at the present place."""
        token = self._token
        there = f"not {token.text!r}" if token.text else "and the condition ends there"
        near = nearest(token.text.lower(), known) if token.text else None
        hint = f"; did you mean {near!r}?" if near and near != token.text else ""
        if token.text.lower() in {"is", "equals"}:
            hint = "; write == to compare"
        raise self._error(token.at, f"{expected}, {there}{hint}")

    def _error(self, at: int, reason: str) -> ConditionSyntaxError:
        return ConditionSyntaxError(self._text, at + 1, reason)


def _name_of(text: str) -> Name:
    """Return the name that a text, such as ``result.score``, stands for."""
    segments = _SEGMENT.findall(text)
    keys = tuple(segment.strip("`") for segment in segments)
    if len(keys) > 1 and segments[0] in {INPUT, RESULT}:
        return Name(segments[0], keys[1:])
    return Name("", keys) if len(keys) == 1 and segments[0] in FACTS else Name(INPUT, keys)


def _shown_key(key: str) -> str:
    return key if _PLAIN_SEGMENT.fullmatch(key) else f"`{key}`"


def _quoted(text: str) -> str:
    for character in ("\\", "'"):
        text = text.replace(character, f"\\{character}")
    for name, character in (("n", "\n"), ("t", "\t"), ("r", "\r")):
        text = text.replace(character, f"\\{name}")
    return f"'{text}'"


def _unquoted(text: str) -> str:
    """Return the value of a text in quotes; as in Python, other escapes keep the backslash."""
    return re.sub(
        r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[0]), text[1:-1], flags=re.DOTALL
    )


def _is_slow(pattern: str) -> bool:
    """Return whether an endless repetition contains another one, as in ``(a+)*``."""
    bare = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "x", pattern, flags=re.DOTALL)
    repeats = [False]
    for at, character in enumerate(bare):
        if character == "(":
            repeats.append(False)
        elif character == ")" and len(repeats) > 1:
            inner = repeats.pop()
            if inner and _REPEATED.match(bare, at + 1):
                return True
            repeats[-1] = repeats[-1] or inner
        elif _REPEATED.match(bare, at):
            repeats[-1] = True
    return False


def _selected(record: Any, path: Sequence[str]) -> list[Any]:
    """Return the value at a path in a list; an empty list if it is not there."""
    for key in path:
        if isinstance(record, Mapping) and key in record:
            record = record[key]
        elif isinstance(record, list) and key.isdecimal() and int(key) < len(record):
            record = record[int(key)]
        else:
            return []
    return [record]


def _row(facts: RecordFacts, key: str) -> list[Any]:
    return [] if facts.error is None else [facts.error.get(key)]


_FACT: Final[dict[str, Callable[[RecordFacts], list[Any]]]] = {
    "drop_reason": lambda facts: list(facts.reasons),
    "dropped": lambda facts: [bool(facts.reasons)],
    "error": lambda facts: _row(facts, "message"),
    "error_type": lambda facts: _row(facts, "exception"),
    "failed": lambda facts: [facts.error is not None],
}


def _equal(left: Any, right: Any) -> bool:
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def _ordered(left: Any, right: Any) -> bool:
    """Return whether two values have an order: two numbers or two texts."""
    if isinstance(left, str) and isinstance(right, str):
        return True
    return all(
        isinstance(value, (int, float)) and not isinstance(value, bool) for value in (left, right)
    )


def _contains(whole: Any, part: Any) -> bool:
    if isinstance(whole, str):
        return isinstance(part, str) and part in whole
    return isinstance(whole, list) and any(_equal(member, part) for member in whole)


def _matches(text: Any, pattern: Any) -> bool:
    return isinstance(text, str) and re.search(pattern, text) is not None


_OPPOSITES: Final = {"!=": "==", "not in": "in"}
_FULFILS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": _equal,
    "<": lambda left, right: _ordered(left, right) and left < right,
    "<=": lambda left, right: _ordered(left, right) and left <= right,
    ">": lambda left, right: _ordered(left, right) and left > right,
    ">=": lambda left, right: _ordered(left, right) and left >= right,
    "in": lambda left, right: _contains(right, left),
    "contains": _contains,
    "matches": _matches,
}
