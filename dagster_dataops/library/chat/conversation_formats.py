"""The formats of conversations: chat records, OpenAI, Anthropic, ShareGPT, Alpaca and pairs.

Each reader splits a record into a chat record and the other columns; each writer does the
reverse. What messages cannot hold stays in the record, so that the way back is exact: the columns
``input`` and ``system`` of Alpaca, and the ShareGPT name of a role that is not the usual one, as
``from`` of its message.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from dagster_dataops.datasets.chats.anthropic_blocks import (
    is_anthropic,
    messages_of,
    system_messages,
    tools_of,
)
from dagster_dataops.datasets.chats.chat_record import (
    DEVELOPER,
    MESSAGES,
    SYSTEM,
    TOOL,
    TOOLS,
    USUAL,
    ChatRules,
    chat_record,
)
from dagster_dataops.datasets.chats.json_fields import json_list, list_of_dicts, text_entry
from dagster_dataops.datasets.chats.losses import Losses
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.chat.alpaca import check_free, read_alpaca, read_pair
from dagster_dataops.library.chat.sharegpt import CONVERSATIONS, read_sharegpt
from dagster_dataops.library.chat.turns import without
from dagster_dataops.readers.agent_traces.session_files import is_trace_line
from dagster_dataops.records import Record

FROM_VALUE, AGENT_TRACE = "from_value", "agent_trace"
_PAIRS: Final = {
    "prompt_completion": ("prompt", "completion"),
    "prompt_response": ("prompt", "response"),
    "question_answer": ("question", "answer"),
    "query_response": ("query", "response"),
}
_TURNS: Final = ("prompt", "completion", "chosen", "rejected", MESSAGES, CONVERSATIONS)
_OF_OPENAI: Final = frozenset({"function_call", "refusal", "audio"})


def format_of(record: Record) -> str | None:
    """Return the name of the format of a record; ``None`` if it is in none."""
    form = _reader_of(record)
    if form != MESSAGES:
        return form
    messages = _listed(record, MESSAGES)  # these forms are all read as chat records
    if any(map(_is_of_openai, messages)):
        return "openai"
    called = any("tool_calls" in message or message.get("role") == TOOL for message in messages)
    return "anthropic" if _has_prompt_beside(record) and not called else MESSAGES


def _reader_of(record: Record) -> str | None:
    """Return the format by which a record is read."""
    if _is_list(record, MESSAGES):
        return "anthropic" if _is_anthropic(record) else MESSAGES
    if _is_list(record, CONVERSATIONS):
        return "sharegpt"
    if isinstance(record.get("instruction"), str):
        return "alpaca"
    for name, keys in _PAIRS.items():
        if all(isinstance(record.get(key), str) for key in keys):
            return name
    return AGENT_TRACE if is_trace_line(record) else None


def _is_list(record: Record, key: str) -> bool:
    """Return whether a column holds a list, or the JSON text of one."""
    value = record.get(key)
    return isinstance(value, list) or (isinstance(value, str) and value.lstrip()[:1] == "[")


def _listed(record: Record, key: str) -> list[dict[str, Any]]:
    """Return the dicts in a column with a list or its JSON text; none if the text is damaged."""
    try:
        values = json_list(record.get(key), key)
    except UnfitRecordError:
        return []
    return (
        [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
    )


def _is_anthropic(record: Record) -> bool:
    if is_anthropic(_listed(record, MESSAGES)):
        return True
    return any("input_schema" in tool for tool in _listed(record, TOOLS))


def _has_prompt_beside(record: Record) -> bool:
    """Return whether the column ``system`` has a prompt, and the messages begin with none."""
    if not record.get("system") or not isinstance(record["system"], (str, list)):
        return False
    messages = _listed(record, MESSAGES)
    return bool(messages) and messages[0].get("role") not in (SYSTEM, DEVELOPER)


def _is_of_openai(message: Mapping[str, Any]) -> bool:
    """Return whether a message has a form that only OpenAI has: text as arguments, old calls."""
    if not _OF_OPENAI.isdisjoint(message) or message.get("role") == "function":
        return True
    calls = message.get("tool_calls")
    listed = calls if isinstance(calls, list) else []
    functions = [item.get("function") for item in listed if isinstance(item, dict)]
    return any(
        isinstance(function, dict) and isinstance(function.get("arguments"), str)
        for function in functions
    )


def to_messages(
    record: Record,
    form: str | None = None,
    rules: ChatRules = USUAL,
    losses: Losses | None = None,
) -> Record:
    """Return a record with its conversation as a chat record in normal form.

    Args:
        record: The record.
        form: The name of its format; by default that of `format_of`.
        rules: The rules, and the form of arguments.
        losses: What a chat record cannot hold; by default an error.
    """
    readers = FORMATS if form else _BY_FORM
    form = form or _reader_of(record)
    if form is None:
        known = f"{MESSAGES}, {CONVERSATIONS}, instruction, or pairs such as question and answer"
        raise UnfitRecordError(f"the record has the keys {', '.join(record)}; expected {known}")
    if form == AGENT_TRACE:
        msg = "the record is a line of a session file of a coding agent"
        raise UnfitRecordError(f"{msg}; read such files by read_agent_traces")
    if form == FROM_VALUE:
        return _renamed(record)
    keys, read = readers[form](record, losses or Losses("a chat record"))
    if MESSAGES not in keys:
        check_free(record, MESSAGES)
    return chat_record(without(record, keys) | read, rules)


_Reading: TypeAlias = tuple[set[str], dict[str, Any]]
"""The keys of the conversation, and the keys of the chat record with their values."""


def _read_messages(record: Record, losses: Losses) -> _Reading:
    del losses  # a chat record holds all of it
    messages = record.get(MESSAGES)
    if record.get("functions") is None:
        return {MESSAGES}, {MESSAGES: messages}
    check_free(record, TOOLS)
    return {MESSAGES, "functions"}, {MESSAGES: messages, TOOLS: record["functions"]}


def _read_with_prompt(record: Record, losses: Losses) -> _Reading:
    """Read messages whose prompt may be in the column ``system``."""
    keys, read = _read_messages(record, losses)
    if not _has_prompt_beside(record):
        return keys, read
    messages: Any = json_list(record[MESSAGES], MESSAGES)
    prompt = system_messages(record["system"], losses)
    return {*keys, "system"}, {**read, MESSAGES: [*prompt, *messages]}


def _read_anthropic(record: Record, losses: Losses) -> _Reading:
    turns = list_of_dicts(MESSAGES, json_list(record.get(MESSAGES), MESSAGES))
    messages = system_messages(record.get("system"), losses)
    for number, turn in enumerate(turns):
        messages += messages_of(turn, f"{MESSAGES}[{number}]", losses)
    read: dict[str, Any] = {MESSAGES: messages}
    tools = json_list(record.get(TOOLS), TOOLS)
    if tools is not None:
        read[TOOLS] = tools_of(tools, losses)
    return {MESSAGES, "system", TOOLS}, read


def _renamed(record: Record) -> Record:
    """Return a record whose turns have ``role`` and ``content`` for ``from`` and ``value``."""
    renamed: dict[str, Any] = record.copy()
    keys = [key for key in _TURNS if isinstance(record.get(key), list)]
    if not keys:
        raise UnfitRecordError(f"the record has no list of turns in {', '.join(_TURNS)}")
    for key in keys:
        turns = list_of_dicts(key, renamed[key])
        renamed[key] = [_renamed_turn(turn, f"{key}[{i}]") for i, turn in enumerate(turns)]
    if CONVERSATIONS in keys:
        check_free(record, MESSAGES)
        renamed[MESSAGES] = renamed.pop(CONVERSATIONS)
    return renamed


def _renamed_turn(turn: dict[str, Any], place: str) -> dict[str, Any]:
    names = {"from": "role", "value": "content"}
    for old, new in names.items():
        if old in turn and new in turn:
            raise UnfitRecordError(f"{place} has both {old!r} and {new!r}; remove one")
    renamed = {names.get(key, key): value for key, value in turn.items()}
    text_entry(renamed, "role", place)
    return renamed


FORMATS: Final[dict[str, Callable[[Record, Losses], _Reading]]] = {
    "messages": _read_messages,
    "openai": _read_messages,
    "anthropic": _read_anthropic,
    "sharegpt": read_sharegpt,
    "alpaca": read_alpaca,
    **{name: partial(read_pair, keys=keys) for name, keys in _PAIRS.items()},
}
_BY_FORM: Final = {**FORMATS, MESSAGES: _read_with_prompt}  # without a format that is named


def write_openai(record: dict[str, Any], losses: Losses) -> Record:
    """Return a chat record whose arguments are texts with the parts that OpenAI has."""
    messages = []
    for number, message in enumerate(record[MESSAGES]):
        content = message["content"]
        if isinstance(content, list):
            place = f"{MESSAGES}[{number}].content"
            parts = (_openai_part(part, f"{place}[{i}]", losses) for i, part in enumerate(content))
            content = [part for part in parts if part is not None]
            losses.check_rest(content, message["content"], place)
        messages.append({**message, "content": content})
    return record | {MESSAGES: messages}


def _openai_part(part: dict[str, Any], place: str, losses: Losses) -> dict[str, Any] | None:
    """Return a part; an image with nothing but an address becomes ``image_url``."""
    kind = part["type"]
    if kind not in {"image", "audio", "video"}:
        return part
    if kind == "image" and part.keys() == {"type", "url"} and isinstance(part["url"], str):
        return {"type": "image_url", "image_url": {"url": part["url"]}}
    losses.lose(place, kind)
    return None
