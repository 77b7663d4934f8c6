"""Nulls that an Arrow table adds: each object of a column gets the keys of all of them."""

from typing import Any, Final

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
