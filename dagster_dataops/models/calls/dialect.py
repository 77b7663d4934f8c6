"""`Dialect`: the fields that a server refuses, learnt from its replies."""

from typing import Any

import orjson

from dagster_dataops.errors import BadRequestError


class Dialect:
    """Changes requests to the form that a server accepts.

    ``max_tokens`` becomes ``max_completion_tokens``, and a ``response_format`` with a JSON Schema
    becomes ``json_object`` with the schema in the last message, once the server has refused them.
    """

    def __init__(self) -> None:
        self._renames_max_tokens = False
        self._has_no_schemas = False

    def adapted(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request in the form that the server accepts."""
        if self._renames_max_tokens and "max_tokens" in request:
            request = {**request, "max_completion_tokens": request["max_tokens"]}
            del request["max_tokens"]
        if self._has_no_schemas and _schema_of(request) is not None:
            request = _with_schema_in_text(request)
        return request

    def learns(self, error: BadRequestError) -> bool:
        """Learn from a refusal, and return whether it names a field that can be replaced."""
        before = (self._renames_max_tokens, self._has_no_schemas)
        self._renames_max_tokens = self._has_no_schemas = False
        self.learn(error)
        named = self._renames_max_tokens or self._has_no_schemas
        self._renames_max_tokens |= before[0]
        self._has_no_schemas |= before[1]
        return named

    def learn(self, error: BadRequestError) -> None:
        """Learn from a refusal which fields the server does not accept."""
        text = str(error)
        self._renames_max_tokens |= "max_completion_tokens" in text
        self._has_no_schemas |= "response_format" in text or "json_schema" in text


def _schema_of(request: dict[str, Any]) -> Any:
    wanted = request.get("response_format")
    return wanted.get("json_schema") if isinstance(wanted, dict) else None


def _with_schema_in_text(request: dict[str, Any]) -> dict[str, Any]:
    schema = orjson.dumps(_schema_of(request)["schema"]).decode()
    text = f"Reply with JSON alone, an instance of this JSON Schema:\n{schema}"
    *before, last = request["messages"]
    content = last["content"]
    if isinstance(content, str):
        content = f"{content}\n\n{text}"
    else:
        content = [*content, {"type": "text", "text": text}]
    messages = [*before, {**last, "content": content}]
    return {**request, "messages": messages, "response_format": {"type": "json_object"}}
