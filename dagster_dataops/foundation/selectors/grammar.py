"""The grammar of selectors, and their parser.

 selector := path ("," path)*       white space around a path is ignored
 path     := (key | index) rest*
 rest     := "." key | index        a dot precedes keys only
 key      := one or more characters other than "." "[" "," and white space
 index    := "[" digits "]" | "[*]"    counted from 0, below 2^64; "[*]" is every element

There are no quotes or escapes: a key with one of these characters cannot be selected.
"""

import re
from collections.abc import Iterable
from enum import Enum
from typing import Final, TypeAlias

from dagster_dataops.errors import SelectorSyntaxError


class Every(Enum):
    """The step ``[*]``."""

    ELEMENT = "[*]"


EVERY: Final = Every.ELEMENT

PathStep: TypeAlias = "str | int | Every"
Path: TypeAlias = tuple[PathStep, ...]

_KEY: Final = re.compile(r"[^.\[,\s]+")
_INDEX: Final = re.compile(r"\[(?:([0-9]+)|\*)\]")
_INDEX_LIMIT: Final = 2**64


def parse(text: str) -> tuple[Path, ...]:
    """Return the paths of a selector, in order.

    Raises:
        SelectorSyntaxError: The selector is malformed; the error gives the column.
    """
    paths: list[Path] = []
    start = 0
    for part in text.split(","):
        lead = len(part) - len(part.lstrip())
        paths.append(_PathParser(text, start + lead, start + len(part.rstrip())).path())
        start += len(part) + 1
    return tuple(paths)


class _PathParser:
    """Parses the path in [position, end) of a selector."""

    def __init__(self, text: str, position: int, end: int) -> None:
        self._text, self._at, self._end = text, position, max(position, end)

    def path(self) -> Path:
        steps: list[PathStep] = []
        while self._at < self._end or not steps:
            steps.append(self._step(first=not steps))
        return tuple(steps)

    def _step(self, *, first: bool) -> PathStep:
        here = self._text[self._at] if self._at < self._end else ""
        if here == "[":
            return self._index()
        if first:
            return self._key("a key or an index is missing here")
        if here != ".":
            blank = "a key cannot contain white space"
            raise self._fault(blank if here.isspace() else "a dot is missing before this key")
        self._at += 1
        return self._key("a dot must be followed by a key")

    def _key(self, missing: str) -> str:
        match = _KEY.match(self._text, self._at, self._end)
        if match is None:
            raise self._fault(missing)
        self._at = match.end()
        return match[0]

    def _index(self) -> int | Every:
        match = _INDEX.match(self._text, self._at, self._end)
        if match is None:
            raise self._fault("an index must be [*] or digits in brackets, counted from 0")
        if match[1] is None:
            self._at = match.end()
            return EVERY
        digits = match[1].lstrip("0") or "0"
        if len(digits) > len(str(_INDEX_LIMIT)) or int(digits) >= _INDEX_LIMIT:
            raise self._fault("an index must be less than 2^64")
        self._at = match.end()
        return int(digits)

    def _fault(self, reason: str) -> SelectorSyntaxError:
        return SelectorSyntaxError(self._text, self._at + 1, reason)


def path_text(path: Iterable[PathStep]) -> str:
    """Return a path in selector syntax."""
    text = ""
    for step in path:
        if isinstance(step, str):
            text += f".{step}" if text else step
        else:
            text += "[*]" if step is EVERY else f"[{step}]"
    return text
