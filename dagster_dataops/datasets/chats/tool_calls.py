"""Calls of tools, and the schemas of tools, in normal form."""

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from dagster_dataops.datasets.chats.json_fields import (
    dict_entry,
    json_text_value,
    kind_of,
    list_of_dicts,
    text_entry,
)
from dagster_dataops.errors import UnfitRecordError

Call: TypeAlias = dict[str, Any]
Tool: TypeAlias = dict[str, Any]

FUNCTION: Final = "function"
_OF_FUNCTIONS: Final = frozenset({"name", "description", "parameters", "strict"})


def checked_calls(calls: object, place: str, form: str) -> list[Call]:
    """Return the calls of a message, their arguments in a form.

    Args:
        calls: A list of calls.
        place: Its path, for errors.
        form: The form of arguments, see `ChatRules`.

    Raises:
        UnfitRecordError: They are no calls of functions, or arguments have another form.
    """
    listed = list_of_dicts(place, calls)
    return [_checked_call(call, f"{place}[{number}]", form) for number, call in enumerate(listed)]


def _checked_call(call: Call, place: str, form: str) -> Call:
    _check_type(call, place)
    if call.get("id") is not None:
        text_entry(call, "id", place)
    function = dict_entry(call, FUNCTION, place)
    text_entry(function, "name", f"{place}.{FUNCTION}")
    if form == "keep":
        return call
    arguments = in_form(function.get("arguments"), form, f"{place}.{FUNCTION}.arguments")
    named = {"type": FUNCTION, FUNCTION: {**function, "arguments": arguments}}
    return {**{key: item for key, item in call.items() if item is not None}, **named}


def in_form(arguments: object, form: str, place: str) -> dict[str, Any] | str:
    """Return the arguments of a call as an ``object`` or as JSON ``text``; nothing is ``{}``."""
    text = arguments if isinstance(arguments, str) else None
    if text is not None:
        arguments = json_text_value(text, place) if text.strip() else {}
    elif arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        kind = kind_of(arguments)
        how = f"the JSON text of {kind}" if text is not None else kind
        raise UnfitRecordError(f"{place} holds {how}; it must be an object")
    if form == "object":
        return arguments
    return text if text and text.strip() else json_text(arguments)


def json_text(value: object) -> str:
    """Return a value as JSON text, as Python writes it by default but with all characters."""
    return json.dumps(value, ensure_ascii=False)


def checked_tools(tools: object, place: str, form: str = "object") -> list[Tool]:
    """Return the schemas of tools; a bare function becomes a tool.

    Args:
        tools: A list of tools or functions.
        place: Its path, for errors.
        form: With ``keep`` they stay as they are.

    Raises:
        UnfitRecordError: They are no functions.
    """
    listed = list_of_dicts(place, tools)
    if form == "keep":
        return listed
    return [_checked_tool(tool, f"{place}[{number}]") for number, tool in enumerate(listed)]


def _checked_tool(tool: Tool, place: str) -> Tool:
    if FUNCTION not in tool and "name" in tool and tool.keys() <= _OF_FUNCTIONS:
        tool = {FUNCTION: tool}
    _check_type(tool, place)
    function = dict_entry(tool, FUNCTION, place)
    text_entry(function, "name", f"{place}.{FUNCTION}")
    if function.get("parameters") is not None:
        dict_entry(function, "parameters", f"{place}.{FUNCTION}")
    return {**tool, "type": FUNCTION}


def _check_type(value: dict[str, Any], place: str) -> None:
    kind = value.get("type")
    if kind is not None and kind != FUNCTION:
        raise UnfitRecordError(f"{place}.type is {kind!r}; it must be 'function'")


def with_text_arguments(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message for a request: arguments that are objects become JSON texts."""
    calls = message.get("tool_calls")
    if not calls:
        return dict(message)
    return {**message, "tool_calls": [_with_text(call) for call in calls]}


def _with_text(call: Call) -> Call:
    function = call.get(FUNCTION)
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), dict):
        return call
    return {**call, FUNCTION: {**function, "arguments": json_text(function["arguments"])}}
