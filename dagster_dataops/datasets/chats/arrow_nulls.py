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
        {**one, "tool_calls": [_call(call) for call in one["tool_calls"]]}
        if "tool_calls" in one
        else one
        for one in messages
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
        return {key: _pruned(one) for key, one in value.items() if one is not None}
    return [_pruned(one) for one in value] if isinstance(value, list) else value


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool.get("function")
    if not isinstance(function, dict):
        return tool
    function = {key: one for key, one in function.items() if one is not None}
    if isinstance(function.get("parameters"), dict):
        function["parameters"] = _schema(function["parameters"])
    return {**{key: one for key, one in tool.items() if one is not None}, "function": function}


def _schema(value: Any) -> Any:
    """Return a schema, or a list of schemas, without keys of null."""
    if isinstance(value, list):
        return [_schema(one) for one in value]
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = {}
    for key, one in value.items():
        if one is None:
            if key in _NULL_IS_DATA:
                made[key] = one
        elif key in _DATA:
            made[key] = one
        else:
            made[key] = _map(one) if key in _MAPS else _schema(one)
    return made


def _map(value: Any) -> Any:
    """Return a map of names to schemas without names of null."""
    if not isinstance(value, dict):
        return value
    return {name: _schema(one) for name, one in value.items() if one is not None}
