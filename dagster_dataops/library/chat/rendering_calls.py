"""The arguments of tool calls, in the form that a chat template shows: an object or a text."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dagster_dataops.datasets.chats.chat_record import REASONING_NAMES, Message
from dagster_dataops.datasets.chats.json_fields import dict_entry, list_of_dicts
from dagster_dataops.datasets.chats.tool_calls import Call, in_form
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.chat.rendering_jinja import ChatTemplate

_ALONE: Final = frozenset({"role", "content", "weight"})
_ARGUMENTS: Final = {"probe_key": "probe_value"}
# An object as Python writes it, and a text that was encoded twice.
_WRONG: Final = ("'probe_key': 'probe_value'", r"\"probe_key", r"\u0022probe_key")


def with_arguments(message: Message, number: int, form: str) -> Message:
    """Return a message with the arguments of its calls in a form.

    Args:
        message: The message. It is not changed.
        number: Its number, for errors.
        form: ``object``, ``text``, or ``keep`` for the form that they have.
    """
    if form == "keep" or not message.get("tool_calls"):
        return message
    place = f"messages[{number}].tool_calls"
    calls = list_of_dicts(place, message["tool_calls"])
    changed = [_call_in(call, f"{place}[{index}]", form) for index, call in enumerate(calls)]
    return {**message, "tool_calls": changed}


def _call_in(call: Call, place: str, form: str) -> Call:
    function = dict_entry(call, "function", place)
    arguments = in_form(function.get("arguments"), form, f"{place}.function.arguments")
    return {**call, "function": {**function, "arguments": arguments}}


def shown_form(template: ChatTemplate, names: Mapping[str, Any]) -> str:
    """Return the form of arguments that a template shows.

    One call is rendered in both forms. Some templates fail on a text, some on an object; others
    encode a text twice, or write an object as Python does.

    Returns:
        ``object`` or ``text``; ``keep`` if the template shows neither.
    """
    if _shows(template, names, _ARGUMENTS):
        return "object"
    return "text" if _shows(template, names, json.dumps(_ARGUMENTS)) else "keep"


def _shows(template: ChatTemplate, names: Mapping[str, Any], arguments: Any) -> bool:
    probe = {**names, "tools": None, "documents": None, "add_generation_prompt": False}
    for messages in _probes(arguments):
        try:
            text = template.render({**probe, "messages": messages}).text
        except UnfitRecordError:
            continue
        return "probe_value" in text and not any(wrong in text for wrong in _WRONG)
    return False


def _probes(arguments: Any) -> Iterator[list[Message]]:
    """Yield conversations with a call: some templates refuse results, or texts outside of parts."""
    function = {"name": "probe", "arguments": arguments}
    call = {"id": "call00001", "type": "function", "function": function}
    turns: list[Message] = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "b", "tool_call_id": "call00001", "name": "probe"},
    ]
    parts = [{**turn, "content": [{"type": "text", "text": turn["content"]}]} for turn in turns]
    for messages in (turns, parts):
        yield messages
        yield messages[:2]


def lost(messages: list[Message], text: str) -> list[tuple[str, str]]:
    """Return the kind and path of each thing in messages that a text does not show.

    Kinds are ``tool_calls``, ``parts`` (texts in a list of parts), ``content`` and ``reasoning``. A
    content may be stripped, written as JSON, or shown without the reasoning before ``</think>``.
    ``encoded_twice`` are arguments that are JSON text, and that the text shows as a text in JSON.
    """
    losses = []
    reached = 0  # contents mostly follow each other, and a search from there ends at once
    for number, message in enumerate(messages):
        content = message.get("content")
        at = text.find(content, reached) if type(content) is str else -1
        if at >= 0:
            reached = at + len(content or "")
        if at < 0 or not message.keys() <= _ALONE:
            places = _lost_of(message, text)
            losses += [(kind, f"messages[{number}].{place}") for kind, place in places]
    return losses


def _lost_of(message: Message, text: str) -> Iterator[tuple[str, str]]:
    content = message.get("content")
    if isinstance(content, str) and not _in(content, text):
        yield "content", "content"
    elif isinstance(content, list) and not all(_in(part, text) for part in _texts(content)):
        yield "parts", "content"
    # Templates know the first one alone.
    name = next((name for name in REASONING_NAMES if isinstance(message.get(name), str)), None)
    if name is not None and not _in(message[name], text):
        yield "reasoning", name
    for place, call in _calls(message):
        if not _shows_call(call, text):
            yield "tool_calls", place
        elif _encodes_twice(call, text):
            yield "encoded_twice", place


def _calls(message: Message) -> Iterator[tuple[str, Any]]:
    """Yield the calls of a message with their paths, also of OpenAI's first form."""
    if message.get("function_call") is not None:
        yield "function_call", message["function_call"]
    for number, call in enumerate(message.get("tool_calls") or []):
        yield f"tool_calls[{number}]", call


def _texts(parts: list[Any]) -> list[str]:
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return [text for text in texts if isinstance(text, str)]


def _in(content: str, text: str) -> bool:
    stripped = content.strip()
    if stripped in text or stripped.rpartition("</think>")[2].strip() in text:
        return True
    if any(form in text for form in _encoded(stripped)):
        return True
    return all(line.strip() in text for line in stripped.splitlines())


def _shows_call(call: Any, text: str) -> bool:
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(function, dict) or str(function.get("name", "")) not in text:
        return False
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        if _in(arguments, text):
            return True
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return False
    return all(_in(leaf, text) for leaf in _leaves(arguments))


def _encodes_twice(call: Any, text: str) -> bool:
    arguments = call.get("function", call).get("arguments")
    if not isinstance(arguments, str) or arguments.strip() in text:
        return False
    return any(form in text for form in _encoded(arguments.strip()))


def _encoded(text: str) -> list[str]:
    """Return a text as it is written in JSON, without the quotes."""
    return [json.dumps(text, ensure_ascii=ascii_)[1:-1] for ascii_ in (False, True)]


def _leaves(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, without the keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
