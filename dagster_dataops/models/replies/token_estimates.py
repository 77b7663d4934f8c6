"""Estimate the tokens of requests and replies from their texts."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dagster_dataops.models.replies.media_tokens import media_kind, media_tokens, sound_tokens

_BYTES_A_TOKEN: Final = 3.5  # of UTF-8: about 4 letters of English, or one character of Chinese
_USUAL_OUTPUT: Final = 256  # tokens of a reply without a limit, until it is there
_OTHER_FIELDS: Final = ("tools", "functions")
_CALLS: Final = ("tool_calls", "function_call")
_SPOKEN: Final = ("content", "text", "refusal", "reasoning_content", "reasoning", "thinking")
_MOST_UNKNOWN: Final = 4000  # characters of a part of an unknown kind that count


def text_tokens(text: str) -> float:
    """Return about how many tokens a text has."""
    length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return length / _BYTES_A_TOKEN


def estimate(
    request: Mapping[str, Any],
    usual_output: float = _USUAL_OUTPUT,
    media: Mapping[str, float] | None = None,
) -> tuple[float, float]:
    """Return about how many tokens a request has, and the most that its reply has.

    ``usual_output`` is the number of tokens of a reply without a limit. ``media`` has the number
    of tokens of a part by its kind: ``image``, ``audio``, ``video``, ``file``.
    """
    if "messages" not in request:
        if "file" in request:  # of a form, with a sound
            return (media or {}).get("audio", sound_tokens(len(request["file"].data))), usual_output
        return text_tokens(str(request.get("input"))), 0.0
    tokens = sum(_message_tokens(message, media or {}) for message in request["messages"])
    tokens += sum(text_tokens(str(request[name])) for name in _OTHER_FIELDS if name in request)
    most = request.get("max_tokens") or request.get("max_completion_tokens") or usual_output
    return tokens, float(most)


def reply_tokens(raw: Mapping[str, Any]) -> int:
    """Return about how many tokens the texts and calls of tools in a reply have; 0 for none."""
    choices = raw.get("choices")
    many = choices if isinstance(choices, list) else [raw]
    objects = [call for call in many if isinstance(call, Mapping)]
    texts = [text for choice in objects for text in _spoken(choice)]
    return -int(-sum(map(text_tokens, texts)) // 1)


def _spoken(choice: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a choice."""
    message = choice.get("message")
    holder = message if isinstance(message, Mapping) else choice
    for name in _SPOKEN:
        yield from _texts_in(holder.get(name))
    for name in _CALLS:
        if holder.get(name):
            yield str(holder[name])


def _texts_in(value: object) -> Iterator[str]:
    """Yield the texts of a text, of a part, or of a list of these."""
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, Mapping):
        for name in _SPOKEN:
            yield from _texts_in(value.get(name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts_in(item)


def _message_tokens(message: Mapping[str, Any], media: Mapping[str, float]) -> float:
    content = message.get("content")
    parts = content if isinstance(content, (list, tuple)) else [content]
    tokens = sum(_part_tokens(part, media) for part in parts)
    return tokens + sum(text_tokens(str(message[name])) for name in _CALLS if message.get(name))


def _part_tokens(part: object, media: Mapping[str, float]) -> float:
    if part is None:
        return 0.0
    if not isinstance(part, Mapping):
        return text_tokens(str(part))
    kind = media_kind(part)
    if kind:
        return media_tokens(part, kind, media)
    text = part.get("text")
    return text_tokens(text if isinstance(text, str) else str(part)[:_MOST_UNKNOWN])
