"""The chat record: the common form of conversations, its rules and its normal form.

`chat_record` checks a record and returns it in normal form::

    {"messages": [message, ...],          at least one
     "tools": [tool, ...],                optional; [] is an explicitly empty list
     "documents": [{...}, ...],           optional
     "chat_template_kwargs": {...}}       optional; further columns stay
    message = {"role": "system" | "developer" | "user" | "assistant" | "tool",
               "content": text | null | [part, ...],
               "reasoning_content": text,   assistant only
               "tool_calls": [call, ...],   assistant only, never empty
               "weight": 0 | 1,             assistant only
               "tool_call_id": text,        tool only
               "name": text}                further keys stay; keys with null are left out
    call = {"id": text, "type": "function",
            "function": {"name": text, "arguments": object | text}}
    tool = {"type": "function", "function": {"name", "description"?, "parameters"?, "strict"?}}

The parts are those of `content_parts`. Each break of a rule is an `UnfitRecordError` that names its
path, such as ``messages[2].tool_calls[0].function.arguments``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from dagster_dataops.datasets.chats.call_links import link_answers
from dagster_dataops.datasets.chats.content_parts import checked_content
from dagster_dataops.datasets.chats.json_fields import (
    dict_entry,
    json_list,
    list_of_dicts,
    text_entry,
)
from dagster_dataops.datasets.chats.tool_calls import checked_calls, checked_tools
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.records import Record

_MAPS: Final = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_DATA: Final = frozenset({"default", "const", "enum", "examples"})
_NULL_IS_DATA: Final = frozenset({"default", "const"})


def without_arrow_nulls(
    messages: list[dict[str, Any]], rest: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return messages and the other columns without keys of null in arguments and schemas.

    In a schema ``default`` and ``const`` may be null, and values in ``enum`` and ``examples``.
    """
    cleaned = [
        {**message, "tool_calls": [_call(call) for call in message["tool_calls"]]}
        if "tool_calls" in message
        else message
        for message in messages
    ]
    if rest.get("tools"):
        rest = {**rest, "tools": [_tool(tool) for tool in rest["tools"]]}
    return cleaned, rest


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    if isinstance(function.get("arguments"), dict):
        function = {**function, "arguments": _pruned(function["arguments"])}
    return {**call, "function": function}


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item is not None}
    return [_pruned(item) for item in value] if isinstance(value, list) else value


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool.get("function")
    if not isinstance(function, dict):
        return tool
    function = {key: item for key, item in function.items() if item is not None}
    if isinstance(function.get("parameters"), dict):
        function["parameters"] = _schema(function["parameters"])
    return {**{key: item for key, item in tool.items() if item is not None}, "function": function}


def _schema(value: Any) -> Any:
    """Return a schema, or a list of schemas, without keys of null."""
    if isinstance(value, list):
        return [_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    pruned: dict[str, Any] = {}
    for key, item in value.items():
        if item is None:
            if key in _NULL_IS_DATA:
                pruned[key] = item
        elif key in _DATA:
            pruned[key] = item
        else:
            pruned[key] = _map(item) if key in _MAPS else _schema(item)
    return pruned


def _map(value: Any) -> Any:
    """Return a map of names to schemas without names of null."""
    if not isinstance(value, dict):
        return value
    return {name: _schema(item) for name, item in value.items() if item is not None}


Message: TypeAlias = dict[str, Any]

MESSAGES, TOOLS = "messages", "tools"
SYSTEM, DEVELOPER, USER, ASSISTANT, TOOL = ROLES = (
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
)
REASONING: Final = "reasoning_content"
BETWEEN_THOUGHTS: Final = "\n\n"  # between several texts of reasoning in one turn
REASONING_NAMES: Final = (REASONING, "thinking", "reasoning")  # the first that is there counts
OLD_RESULT: Final = "function"  # the role of results in OpenAI's first form of calls
# The roles that may follow a role; "" is the start.
_NEXT: Final[Mapping[str, tuple[str, ...]]] = {
    "": (SYSTEM, DEVELOPER, USER),
    SYSTEM: (DEVELOPER, USER),
    DEVELOPER: (USER,),
    USER: (ASSISTANT,),
    ASSISTANT: (USER, TOOL),
    TOOL: (TOOL, ASSISTANT, USER),
}
_PLAIN: Final = frozenset({"role", "content"})
_IN_PLACE_OF_CONTENT: Final = frozenset({"tool_calls", "audio", *REASONING_NAMES})
_ROLE_OF_KEY: Final = {  # the keys that messages of one role alone have
    "tool_calls": ASSISTANT,
    REASONING: ASSISTANT,
    "weight": ASSISTANT,
    "tool_call_id": TOOL,
}


@dataclass(frozen=True, kw_only=True)
class ChatRules:
    """The rules for a chat record, and its form.

    Attributes:
        arguments: The form of the arguments of calls: an ``object``, as templates of Hugging Face
            take them, or JSON ``text``, as OpenAI writes them. ``keep`` leaves calls, tools and
            the names of reasoning as they are, and makes no ids.
        order: With ``turns`` the roles must take turns; with ``any`` they must only be known.
        unanswered: Whether calls without an answer before a later turn are an ``error``. At the end
            of the record they never are.
        nulls: With ``arrow``, keys with null in arguments and in schemas of tools are left out.
        flatten_text: Whether a content of exactly one text part becomes that text.
    """

    arguments: Literal["object", "text", "keep"] = "object"
    order: Literal["turns", "any"] = "turns"
    unanswered: Literal["error", "keep"] = "error"
    nulls: Literal["keep", "arrow"] = "keep"
    flatten_text: bool = True


USUAL: Final = ChatRules()


def chat_record(record: Record, rules: ChatRules = USUAL) -> Record:
    """Return a record with its conversation in normal form. The record is not changed.

    ``messages`` and ``tools`` that hold JSON text are read. Calls without an id get one
    (``call_1``, ``call_2``), and results without one that of the first call without an answer.

    Args:
        record: A record with ``messages``.
        rules: The rules, and the form of arguments.

    Raises:
        UnfitRecordError: The record breaks a rule.
    """
    chat: dict[str, Any] = record.copy()
    messages = chat_messages(json_list(record.get(MESSAGES), MESSAGES), rules)
    tools = json_list(chat.get(TOOLS), TOOLS)
    if tools is not None:
        chat[TOOLS] = checked_tools(tools, TOOLS, rules.arguments)
    elif TOOLS in chat:
        del chat[TOOLS]
    if chat.get("documents") is not None:
        list_of_dicts("documents", chat["documents"])
    if chat.get("chat_template_kwargs") is not None:
        dict_entry(chat, "chat_template_kwargs", "")
    if rules.nulls == "arrow":
        messages, chat = without_arrow_nulls(messages, chat)
    return chat | {MESSAGES: messages}


def chat_messages(messages: object, rules: ChatRules = USUAL) -> list[Message]:
    """Return messages in normal form, as `chat_record` does.

    Args:
        messages: A list of messages.
        rules: The rules, and the form of arguments.
    """
    listed = list_of_dicts(MESSAGES, messages)
    if not listed:
        raise UnfitRecordError(f"{MESSAGES} has no turns")
    chat = [_message(entry, f"{MESSAGES}[{number}]", rules) for number, entry in enumerate(listed)]
    if rules.order == "turns" and (fault := order_fault(chat)):
        raise UnfitRecordError(f"{MESSAGES}{fault}")
    link_answers(
        chat,
        MESSAGES,
        makes_ids=rules.arguments != "keep",
        keeps_unanswered=rules.unanswered == "keep",
    )
    return chat


def order_fault(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Return where roles are out of order, such as ``[2] has ...``; ``None`` if they are not.

    A conversation may begin with ``system``, ``developer`` or both. ``user`` and ``assistant`` take
    turns from there on; ``tool`` may stand after ``assistant`` and before either. Two turns of
    ``assistant`` may follow each other if the first one calls tools.
    """
    before, called = "", False
    for position, message in enumerate(messages):
        role = message["role"]
        expected = (*_NEXT[before], ASSISTANT) if called else _NEXT[before]
        if role not in expected:
            after = f"after {before!r}" if before else "at the start"
            return f"[{position}] has the role {role!r} {after}; expected {' or '.join(expected)}"
        before, called = role, bool(message.get("tool_calls"))
    return None


def _message(message: Message, place: str, rules: ChatRules) -> Message:
    """Return a message in normal form, apart from the ids of calls."""
    if message.keys() == _PLAIN and type(message["content"]) is str and message["role"] in ROLES:
        return dict(message)  # as most are; the rest takes ten times as long
    result = {key: value for key, value in message.items() if value is not None or key == "content"}
    result["role"] = _role(message, place)
    _move_old_call(result, place)
    if result.get("tool_calls") == []:
        del result["tool_calls"]
    if rules.arguments != "keep":
        _move_reasoning(result)
    _check_keys(result, place)
    if "tool_calls" in result:
        calls = checked_calls(result["tool_calls"], f"{place}.tool_calls", rules.arguments)
        result["tool_calls"] = calls
    result["content"] = checked_content(
        _content(result, place),
        f"{place}.content",
        may_be_null=not result.keys().isdisjoint(_IN_PLACE_OF_CONTENT),
        flatten=rules.flatten_text,
    )
    return result


def _role(message: Message, place: str) -> str:
    role = text_entry(message, "role", place)
    role = TOOL if role == OLD_RESULT else role
    if role not in ROLES:
        raise UnfitRecordError(f"{place} has the role {role!r}; use one of {', '.join(ROLES)}")
    return role


def _move_old_call(message: Message, place: str) -> None:
    """Make ``function_call``, OpenAI's first form of a call, a call without an id."""
    old = message.pop("function_call", None)
    if old is None:
        return
    if message.get("tool_calls"):
        raise UnfitRecordError(f"{place} has both tool_calls and function_call; remove one")
    message["tool_calls"] = [{"type": "function", "function": old}]


def _move_reasoning(message: Message) -> None:
    """Write the first reasoning text as ``reasoning_content``; equal copies go."""
    names = [name for name in REASONING_NAMES if isinstance(message.get(name), str)]
    if names:
        text = message[names[0]]
        for name in names:
            if message[name] == text:
                del message[name]
        message[REASONING] = text


def _check_keys(message: Message, place: str) -> None:
    """Check the keys that have a meaning here, besides role, content and calls."""
    for key, role in _ROLE_OF_KEY.items():
        if key in message and message["role"] != role:
            msg = f"{place}.{key} is of no use in a message of the role {message['role']!r}"
            raise UnfitRecordError(f"{msg}; it belongs to {role!r}")
    for key in ("name", "tool_call_id", REASONING):
        if key in message:
            text_entry(message, key, place)
    weight = message.get("weight", 0)
    if type(weight) is not int or weight not in {0, 1}:
        raise UnfitRecordError(f"{place}.weight is {weight!r}; it must be 0 or 1")


def _content(message: Message, place: str) -> object:
    """Return the content; a ``refusal`` of OpenAI becomes a part of it."""
    content = message.get("content")
    if "refusal" not in message:
        return content
    refusal = {"type": "refusal", "refusal": text_entry(message, "refusal", place)}
    del message["refusal"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    return [*list_of_dicts(f"{place}.content", content or []), refusal]
