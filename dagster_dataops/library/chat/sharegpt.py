"""The form ShareGPT: ``conversations``, a list of dicts with ``from`` and ``value``.

A call of tools is a turn ``function_call`` whose value is the JSON text of ``{"name",
"arguments"}``, or of a list of these. ``tools`` is the JSON text of a list of functions.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from dagster_dataops.datasets.chats.call_links import make_ids, new_ids
from dagster_dataops.datasets.chats.chat_record import (
    ASSISTANT,
    DEVELOPER,
    MESSAGES,
    REASONING,
    SYSTEM,
    TOOL,
    TOOLS,
    USER,
    Message,
)
from dagster_dataops.datasets.chats.content_parts import plain_text
from dagster_dataops.datasets.chats.json_fields import (
    json_list,
    json_text_value,
    kind_of,
    list_of_dicts,
    text_entry,
)
from dagster_dataops.datasets.chats.losses import Losses
from dagster_dataops.datasets.chats.tool_calls import FUNCTION, Call, json_text
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.chat.turns import TWO_PROMPTS, without
from dagster_dataops.records import Record

CONVERSATIONS: Final = "conversations"
_CALL: Final = "function_call"
_ROLE_OF: Final = {
    "human": USER,
    "user": USER,
    "gpt": ASSISTANT,
    "assistant": ASSISTANT,
    _CALL: ASSISTANT,
    "system": SYSTEM,
    "observation": TOOL,
    "tool": TOOL,
}
_NAME_OF: Final = {
    USER: "human",
    ASSISTANT: "gpt",
    SYSTEM: "system",
    DEVELOPER: "system",
    TOOL: "observation",
}
_OF_CALLS: Final = frozenset({"name", "arguments", "id"})
_OF_MESSAGES: Final = frozenset({"role", "content", "from", "tool_calls", "tool_call_id"})


def read_sharegpt(record: Record, losses: Losses) -> tuple[set[str], dict[str, Any]]:
    """Return the keys of a conversation, and what they say as a chat record."""
    del losses  # a chat record holds all of it
    turns: Any = json_list(record.get(CONVERSATIONS), CONVERSATIONS)
    messages = [_message(turn, place) for turn, place in _placed(turns)]
    make_ids(
        [message for message in messages if message["content"] is None]
    )  # others may hold anything
    keys = {CONVERSATIONS}  # the tools are those of a chat record, perhaps as text
    if record.get("system"):
        messages.insert(0, {"role": SYSTEM, "content": text_entry(record, "system", "")})
        keys.add("system")
    return keys, {MESSAGES: messages}


def _placed(turns: object) -> Iterator[tuple[dict[str, Any], str]]:
    for position, turn in enumerate(list_of_dicts(CONVERSATIONS, turns)):
        yield turn, f"{CONVERSATIONS}[{position}]"


def _message(turn: dict[str, Any], place: str) -> Message:
    name = text_entry(turn, "from", place)
    role = _ROLE_OF.get(name)
    if role is None:
        raise UnfitRecordError(f"{place}.from is {name!r}; use one of {', '.join(_ROLE_OF)}")
    used = {"role", "content", "tool_calls"} if name == _CALL else {"role", "content"}
    clashing = used & turn.keys()
    if clashing:
        raise UnfitRecordError(f"{place} has the keys of a message: {sorted(clashing)}")
    value = text_entry(turn, "value", place)
    more = {key: value for key, value in turn.items() if key not in {"from", "value"}}
    if name == _CALL:
        return {
            "role": role,
            "content": None,
            "tool_calls": _calls(value, f"{place}.value"),
            **more,
        }
    if name != _NAME_OF[role]:
        more["from"] = name
    return {"role": role, "content": value, **more}


def _calls(value: str, place: str) -> list[Call]:
    parsed = json_text_value(value, place)
    listed = parsed if isinstance(parsed, list) else [parsed]
    if not listed:
        raise UnfitRecordError(f"{place} is an empty list of calls")
    return [_call(call, place) for call in listed]


def _call(value: object, place: str) -> Call:
    if not isinstance(value, dict):
        raise UnfitRecordError(f"{place} holds {kind_of(value)} as a call; it must be an object")
    if unknown := value.keys() - _OF_CALLS:
        msg = f"{place} is a call with the keys {sorted(unknown)}"
        raise UnfitRecordError(f"{msg}; use name and arguments")
    name = {"id": value["id"]} if value.get("id") is not None else {}
    function = {"name": text_entry(value, "name", place), "arguments": value.get("arguments")}
    return {**name, "type": FUNCTION, FUNCTION: function}


def write_sharegpt(
    record: dict[str, Any],
    losses: Losses,
    *,
    split_system: bool = False,
    separator: str | None = None,
) -> Record:
    """Return a chat record in normal form as a record with ``conversations``.

    Args:
        record: The record.
        losses: What turns cannot hold.
        split_system: Whether the first message of the system becomes the column ``system``.
        separator: Text between results in a row, which become one turn; ``None`` for a turn
            of each.
    """
    rest: dict[str, Any] = without(record, (MESSAGES,))
    messages: list[Message] = record[MESSAGES]
    start = 0
    begins = messages[0]["role"] in {SYSTEM, DEVELOPER}
    if split_system and begins and not rest.get("system"):
        rest["system"] = _turn(messages[0], f"{MESSAGES}[0]", losses)["value"]
        start = 1
    elif rest.get("system"):
        start = 1 if _is_prompt(messages[0], rest["system"]) else 0
        if not start:
            raise UnfitRecordError(TWO_PROMPTS)
    if rest.get(TOOLS) is not None:
        rest[TOOLS] = _tools_text(rest[TOOLS], losses)
    _check_links(messages, losses)
    turns = [
        _turn(message, f"{MESSAGES}[{i}]", losses)
        for i, message in enumerate(messages)
        if i >= start
    ]
    if separator is not None:
        turns = list(_joined_results(turns, separator, losses))
    return rest | {CONVERSATIONS: turns}


def _joined_results(
    turns: list[dict[str, Any]], separator: str, losses: Losses
) -> Iterator[dict[str, Any]]:
    """Yield the turns, with results in a row as one turn."""
    for name, group in groupby(turns, key=lambda turn: turn["from"]):
        same = list(group)
        if _ROLE_OF[name] != TOOL or len(same) == 1:
            yield from same
            continue
        values = [turn.pop("value") for turn in same]
        losses.note("borders_of_results")
        for turn in same:
            losses.lose_others(turn, {"from"}, CONVERSATIONS)
        yield {"from": name, "value": separator.join(values)}


def _is_prompt(message: Message, system: object) -> bool:
    return bool(message == {"role": SYSTEM, "content": system})


def _tools_text(tools: list[dict[str, Any]], losses: Losses) -> str:
    for position, tool in enumerate(tools):
        losses.lose_others(tool, {"type", FUNCTION}, f"{TOOLS}[{position}]")
    return json_text([tool[FUNCTION] for tool in tools])


def _turn(message: Message, place: str, losses: Losses) -> dict[str, Any]:
    role = message["role"]
    name = message.get("from", _NAME_OF[role])
    others = [known for known, of in _ROLE_OF.items() if of == role and known != _NAME_OF[role]]
    if "from" in message and name not in others:
        raise UnfitRecordError(f"{place} has the role {role!r} and from={name!r}")
    if "value" in message:
        raise UnfitRecordError(f"{place} has the key 'value', which ShareGPT uses itself")
    if role == DEVELOPER:
        losses.lose(place, DEVELOPER)
    more = {key: value for key, value in message.items() if key not in _OF_MESSAGES}
    lost = [key for key in (REASONING, "is_error", "audio") if key in more]
    for key in lost:
        losses.lose(f"{place}.{key}", key)
        del more[key]
    text = _text(message, place, losses)
    losses.check_rest(text or "tool_calls" in message or role == TOOL, lost, place)
    if "tool_calls" in message:
        if text:
            losses.lose(place, "text_with_calls")
        return {"from": _CALL, "value": _calls_text(message["tool_calls"], place, losses), **more}
    return {"from": name, "value": text or "", **more}


def _text(message: Message, place: str, losses: Losses) -> str | None:
    content = message["content"]
    if not isinstance(content, list):
        return None if content is None else str(content)
    texts = []
    for position, part in enumerate(content):
        if part["type"] != "text":
            losses.lose(f"{place}.content[{position}]", part["type"])
        else:
            texts.append(part)
    losses.check_rest(texts, content, f"{place}.content")
    if len(texts) > 1:
        losses.lose(f"{place}.content", "borders_of_texts")
    return plain_text(texts)


def _calls_text(calls: list[Call], place: str, losses: Losses) -> str:
    listed = []
    for position, call in enumerate(calls):
        at = f"{place}.tool_calls[{position}]"
        losses.lose_others(call, {"id", "type", FUNCTION}, at)
        function = call[FUNCTION]
        losses.lose_others(function, {"name", "arguments"}, f"{at}.{FUNCTION}")
        listed.append({"name": function["name"], "arguments": function["arguments"]})
    return json_text(listed if len(listed) > 1 else listed[0])


def _check_links(messages: list[Message], losses: Losses) -> None:
    """Count the ids of calls that ShareGPT does not keep; check the order of results.

    Read again, the first result answers the first call, and ids are ``call_1``, ``call_2``.
    """
    names = new_ids(set())
    waiting: list[str] = []
    for position, message in enumerate(messages):
        for call in message.get("tool_calls", []):
            if call["id"] != next(names):
                losses.note("call_id")
        if message["role"] != TOOL:
            waiting = [call["id"] for call in message.get("tool_calls", [])]
        elif "tool_call_id" in message and waiting.pop(0) != message["tool_call_id"]:
            msg = f"{MESSAGES}[{position}].tool_call_id names another call than the next one"
            raise UnfitRecordError(f"{msg}; in ShareGPT results stand in the order of the calls")
