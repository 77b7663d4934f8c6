"""Find JSON in the text of a reply, in time that grows with its length."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from dagster_dataops.models.replies.message_parts import begins_with_thinking, end_of_thinking

OBJECTS: Final = "{"
LISTS: Final = "["
_PAIRS: Final = {"{": "}", "[": "]"}
_STARTS: Final = {"{": r"\{(?=[ \t\r\n]*+[\"}])", "[": r"\[(?=[ \t\r\n]*+[\"\[\]{0-9tfn-])"}
_TOKEN: Final = re.compile(
    r"[ \t\r\n]*+(?:"
    r"(?P<open>[{\[])|(?P<close>[}\]])|(?P<mark>[,:])"
    r'|(?P<string>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")'
    r"|(?P<scalar>-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+|true|false|null)"
    r")"
)
_VALUE: Final = frozenset({"value", "value or end"})
_KEY: Final = frozenset({"key", "key or end"})
_BRACKET: Final = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|[{}\[\]]')
_BEGUN_OBJECT: Final = 3  # tokens: a brace, a key and a colon
_BEGUN_LIST: Final = 2
_LONG_NUMBER: Final = re.compile(r"\d{19}")
_END_MARKS: Final = re.compile(
    r"(?:\s|<\|[\w▁.-]{1,40}\|>|<\uff5c[\w▁.-]{1,40}\uff5c>|</s>|<eos>|<end_of_turn>)*\Z"
)
_FENCE: Final = re.compile(r"```[\w+-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_LONGEST_MARKS: Final = 400  # characters at the end of a text in which marks are looked for


def json_value(text: str) -> Any:
    """Return the value of a JSON text; whole numbers of any size are whole numbers.

    Raises:
        ValueError: It is no JSON.
    """
    value = orjson.loads(text)
    return json.loads(text) if _LONG_NUMBER.search(text) else value


def json_texts(text: str, starts: str = OBJECTS + LISTS, *, scalars: bool = False) -> Iterator[str]:
    """Yield the texts of the JSON values in a text, in order: the ones to try.

    The whole text comes first. Then come the values after the last end of thinking, or else values
    that contain it. Prose, fences and marks of the end around them are left out, and so is what is
    no JSON. Nothing is repaired: a trailing comma or NaN is no JSON. Values inside of others, also
    of those that are no JSON, are not yielded.

    Args:
        text: The text.
        starts: The characters with which values begin.
        scalars: Whether a text, a number, a truth value or null may be a value: the whole text, or
            the content of a fence.
    """
    whole = text.strip()
    begin = end_of_thinking(whole)
    if not whole or (not begin and begins_with_thinking(whole)):
        return
    if whole[0] in starts or scalars:
        yield whole
    if scalars:
        yield without_end_marks(whole[begin:]).strip()
        yield from (fence[1].strip() for fence in _FENCE.finditer(whole[begin:]))
    yield from (text for _, text in _placed(whole, begin, starts))
    if begin:
        yield from (text for at, text in _placed(whole, 0, starts) if at < begin < at + len(text))


def without_end_marks(text: str) -> str:
    """Return a text without marks of its end, such as ``<|im_end|>``."""
    at = max(0, len(text) - _LONGEST_MARKS)
    tail = text[at:]
    while (cut := _END_MARKS.search(tail)) and cut.start() < len(tail):
        tail = tail[: cut.start()]
    return text[:at] + tail


def _placed(text: str, begin: int, starts: str) -> Iterator[tuple[int, str]]:
    """Yield the values from a position on, each with its position."""
    if not starts:
        return
    start = re.compile("|".join(_STARTS[start] for start in starts))
    at = begin
    while bracket := start.search(text, at):
        first = bracket.start()
        end, at = _end_of(text, first)
        if end:
            yield first, text[first:end]


def _end_of(text: str, start: int) -> tuple[int, int]:
    """Return the end of the object or list at a position, and where to look for the next one.

    The end is 0 if there is no JSON. If it began like JSON, the next one is after its last bracket:
    a part of a faulty value is no value. Otherwise the bracket belongs to prose, and so may do the
    quotation mark after it.
    """
    stack: list[str] = []  # what closes each container
    wanted, at, count = "value", start, 0
    while token := _TOKEN.match(text, at):
        kind = str(token.lastgroup)
        wanted = _next(kind, text[token.start(kind)], wanted, stack)
        if not wanted:
            break
        at, count = token.end(), count + 1
        if not stack:
            return at, at
    began = count >= (_BEGUN_OBJECT if text[start] == "{" else _BEGUN_LIST)
    return 0, _loose_end(text, at, len(stack)) if began else start + 1


def _loose_end(text: str, at: int, depth: int) -> int:
    """Return the position after the bracket that closes ``depth`` open ones; else the end."""
    for bracket in _BRACKET.finditer(text, at):
        if bracket.group() in "{[":
            depth += 1
        elif bracket.group() in "}]":
            depth -= 1
        if not depth:
            return bracket.end()
    return len(text)


def _next(kind: str, character: str, wanted: str, stack: list[str]) -> str:
    """Return what must follow a token with this first character; empty if the token is wrong.

    ``wanted`` is what the token must be: ``value``, ``key``, ``colon``, ``mark`` for a comma, or
    ``end`` for a bracket that closes; perhaps the last with one of the others. The stack has what
    closes each open container, and is changed.
    """
    following = ""
    if kind == "open" and wanted in _VALUE:
        stack.append(_PAIRS[character])
        following = "key or end" if character == "{" else "value or end"
    elif kind == "close" and wanted.endswith("end") and character == stack[-1]:
        stack.pop()
        following = "mark or end"
    elif kind == "mark" and wanted == ("colon" if character == ":" else "mark or end"):
        following = "key" if character == "," and stack[-1] == "}" else "value"
    elif kind == "string" and wanted in _KEY:
        following = "colon"
    elif kind in {"string", "scalar"} and wanted in _VALUE:
        following = "mark or end"
    return following
