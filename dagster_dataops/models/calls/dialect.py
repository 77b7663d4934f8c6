"""`Dialect`: the fields that a server refuses, learnt from its replies."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from dagster_dataops.errors import BadRequestError

_MAX_TOKENS: Final = "max_completion_tokens"
_SCHEMA: Final = "json_schema"
_SEED: Final = "seed"
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {  # in a refusal of the field
    _MAX_TOKENS: (_MAX_TOKENS,),
    _SCHEMA: (_SCHEMA, "response_format"),
    _SEED: (_SEED,),
}


class Dialect:
    """Changes requests to the form that a server accepts.

    Once the server has refused them, ``max_tokens`` becomes ``max_completion_tokens``, a
    ``response_format`` with a JSON Schema becomes ``json_object`` with the schema in the last
    message, and ``seed`` is left out.
    """

    def __init__(self) -> None:
        self._refused: set[str] = set()

    def adapted(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request in the form that the server accepts."""
        if _MAX_TOKENS in self._refused and "max_tokens" in request:
            request = {**request, _MAX_TOKENS: request["max_tokens"]}
            del request["max_tokens"]
        if _SCHEMA in self._refused and _schema_of(request) is not None:
            request = _with_schema_in_text(request)
        if _SEED in self._refused and _SEED in request:
            request = {name: value for name, value in request.items() if name != _SEED}
        return request

    def learn(self, error: BadRequestError) -> bool:
        """Learn from a refusal, and return whether it names a field that can be replaced."""
        named = {
            field for field, words in _WORDS.items() if any(word in str(error) for word in words)
        }
        self._refused |= named
        return bool(named)


def _schema_of(request: dict[str, Any]) -> Any:
    wanted = request.get("response_format")
    return wanted.get("json_schema") if isinstance(wanted, dict) else None


def _with_schema_in_text(request: dict[str, Any]) -> dict[str, Any]:
    schema = orjson.dumps(_schema_of(request)["schema"]).decode()
    text = f"Reply with JSON alone, an instance of this JSON Schema:\n{schema}"
    *before, last = request["messages"]
    content = last.get("content") or ""
    if isinstance(content, str):
        content = f"{content}\n\n{text}".lstrip()
    else:
        content = [*content, {"type": "text", "text": text}]
    messages = [*before, {**last, "content": content}]
    return {**request, "messages": messages, "response_format": {"type": "json_object"}}
