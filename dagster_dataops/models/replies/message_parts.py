"""`Message`: what a choice of a reply says: text, reasoning, refusal and calls of tools."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import BadReplyError, InvalidOutputError

_TEXT_PARTS: Final = frozenset({"text", "output_text"})
_REASONING_PARTS: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
_REASONING_KEYS: Final = ("reasoning_content", "reasoning")
_OTHERS: Final = ("refusal", "tool_calls", "function_call", *_REASONING_KEYS)
_TEXTS_OF_REASONING: Final = ("text", "thinking", "reasoning", "summary", "content")
_END_OF_THINKING: Final = re.compile(
    r"</(?:\w{1,20}:)?(?:think|thinking|thoughts?|reasoning)>|◁/think▷|\[/THINK\]"
    r"|<\|channel\|>final\s*(?:<\|constrain\|>\s*\w{0,20}\s*)?<\|message\|>",
    re.IGNORECASE,
)
_BEGIN_OF_THINKING: Final = re.compile(
    r"\s*(?:<(?:\w{1,20}:)?(?:think|thinking|thoughts?|reasoning)>|◁think▷|\[THINK\]"
    r"|<\|channel\|>analysis<\|message\|>)",
    re.IGNORECASE,
)
_ZERO_WIDTH: Final = "\u200b\u200c\u200d\u2060\ufeff"


class Message(NamedTuple):
    """What a choice of a reply says.

    Attributes:
        text: The text; empty if there is none.
        reasoning: What the model thought; empty if the server does not show it.
        refusal: What the model says when it refuses to answer; empty if it does not.
        tool_calls: Calls of tools, in OpenAI's form.
    """

    text: str
    reasoning: str
    refusal: str
    tool_calls: list[dict[str, Any]]


def message_of(choice: Mapping[str, Any]) -> Message:
    """Return what a choice says.

    Raises:
        BadReplyError: It has no message.
        InvalidOutputError: The message has parts that are no text.
    """
    message = choice.get("message")
    if not isinstance(message, dict):
        if not isinstance(choice.get("text"), str):  # of a completion
            reason = f"a choice has no message; its keys are {', '.join(map(str, choice))}"
            raise BadReplyError(reason)
        message = {"content": choice["text"]}
    content = message.get("content")
    if type(content) is str and not any(map(message.get, _OTHERS)):
        return Message(content, "", "", [])
    parts = _ContentParts()
    parts.take(content)
    for name in _REASONING_KEYS:
        parts.reasoning += _texts_in(message.get(name))
    refusal = message.get("refusal")
    if isinstance(refusal, str):
        parts.refusals.append(refusal)
    return Message(
        text="".join(parts.texts),
        reasoning="\n".join(dict.fromkeys(parts.reasoning)),
        refusal="\n".join(refusal for refusal in parts.refusals if refusal),
        tool_calls=_tool_calls(message),
    )


def is_blank(text: str) -> bool:
    """Return whether a text has nothing but white space and characters of no width."""
    return not text.strip() or not text.strip(_ZERO_WIDTH).strip(f"{_ZERO_WIDTH} \t\r\n")


def end_of_thinking(text: str) -> int:
    """Return where the last block of thinking in a text ends; 0 without one."""
    end = 0
    for mark in _END_OF_THINKING.finditer(text):
        end = mark.end()
    return end


def begins_with_thinking(text: str) -> bool:
    """Return whether a text begins with a mark of thinking."""
    return _BEGIN_OF_THINKING.match(text) is not None


def without_thinking(text: str) -> tuple[str, str]:
    """Return the text after the thinking that it begins with, and the thinking.

    The text after the last end of thinking counts. Of thinking without an end, nothing does.
    """
    end = end_of_thinking(text)
    begin = _BEGIN_OF_THINKING.match(text)
    if not end and not begin:
        return text, ""
    if not end:
        return "", text[begin.end() if begin else 0 :].strip()
    thought = _END_OF_THINKING.sub("", text[begin.end() if begin else 0 : end])
    return text[end:].lstrip(), thought.strip()


class _ContentParts:
    """The parts of a content by kind."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.reasoning: list[str] = []
        self.refusals: list[str] = []

    def take(self, content: object) -> None:
        """Take a content: a text, a list of parts, or a part.

        Raises:
            BadReplyError: It is something else.
            InvalidOutputError: A part is no text.
        """
        if content is None:
            return
        parts = content if isinstance(content, list) else [content]
        unknown = [kind for part in parts if (kind := self._take_part(part))]
        if unknown:
            kinds = ", ".join(dict.fromkeys(unknown))
            reason = f"the reply has parts that are no text, of type {kinds}"
            raise InvalidOutputError(reason)

    def _take_part(self, part: object) -> str:
        """Take a part; return its type if it is not known."""
        if isinstance(part, str):
            self.texts.append(part)
            return ""
        if not isinstance(part, dict):
            reason = f"the content of the reply is {part!r:.80}, no text"
            raise BadReplyError(reason)
        kind = str(part.get("type", "text"))
        if kind in _REASONING_PARTS:
            self.reasoning += _texts_in(part)
        elif kind == "refusal":
            self.refusals.append(str(part.get("refusal")))
        elif kind in _TEXT_PARTS and isinstance(part.get("text"), str):
            self.texts.append(part["text"])
        else:
            return repr(kind)
        return ""


def _texts_in(value: object) -> list[str]:
    """Return the texts of reasoning: a text, a part, or a list of these."""
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, dict):
        return [text for name in _TEXTS_OF_REASONING for text in _texts_in(value.get(name))]
    many = ["".join(_texts_in(item)) for item in value] if isinstance(value, list) else []
    return [text for text in many if text]


def _tool_calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of tools of a message; those of the older form in the newer one."""
    calls = message.get("tool_calls")
    many = calls if isinstance(calls, list) else []
    in_newer_form = [dict(call) for call in many if isinstance(call, dict)]
    older = message.get("function_call")
    if isinstance(older, dict) and older:
        in_newer_form.append({"type": "function", "function": dict(older)})
    return in_newer_form
