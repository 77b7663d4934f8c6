"""`Placeholder`: a client that calls no model; it answers in the form asked for."""

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from dagster_dataops.models.replies.reply_store import request_key
from dagster_dataops.models.replies.token_estimates import estimate

_USUAL_OUTPUT: Final = 1000  # tokens of a reply without a limit
_ITEMS: Final = 3  # of a list
_DIMENSIONS: Final = 32  # of a vector


class Placeholder:
    """A client that calls no model; it answers in the form asked for.

    The usage that it reports has the tokens of the request by the number of characters, and as many
    tokens of the reply as the request allows. ``media`` has the tokens of parts by their kind.
    """

    def __init__(self, media: Mapping[str, float] | None = None) -> None:
        self._media = media

    async def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return a reply to a request for a chat or for vectors."""
        tokens_in, most = estimate(request, _USUAL_OUTPUT, self._media)
        usage = {"prompt_tokens": round(tokens_in), "completion_tokens": round(most)}
        if "input" in request:
            vectors = [
                {"index": at, "embedding": _vector_for(text)}
                for at, text in enumerate(request["input"])
            ]
            return {"data": vectors, "usage": usage}
        key = request_key(request)[:8]  # equal texts would lead to equal further requests
        texts = (f"placeholder {key} {number}" for number in itertools.count(1))
        wanted = (request.get("response_format") or {}).get("json_schema")
        text = next(texts)
        if wanted is not None:
            text = orjson.dumps(instance_of(wanted["schema"], texts)).decode()
        message = {"role": "assistant", "content": text}
        return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}


def _vector_for(text: str) -> list[float]:
    """Return a vector that is far from those of other texts."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIMENSIONS)
    return [byte / 255 - 0.5 for byte in digest.digest()]


def instance_of(
    schema: dict[str, Any], texts: Iterator[str], definitions: dict[str, Any] | None = None
) -> Any:
    """Return an instance of a JSON Schema as servers take it; its texts are the next of ``texts``.

    ``definitions`` has the schemas that references name, by default those of the schema.
    """
    definitions = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        return instance_of(definitions[schema["$ref"].rsplit("/", 1)[1]], texts, definitions)
    for choices in ("anyOf", "oneOf", "allOf"):
        if choices in schema:
            return instance_of(schema[choices][0], texts, definitions)
    if "enum" in schema:
        return schema["enum"][0]
    return schema["const"] if "const" in schema else _of_type(schema, texts, definitions)


def _of_type(schema: dict[str, Any], texts: Iterator[str], definitions: dict[str, Any]) -> Any:
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            return {
                name: instance_of(schema, texts, definitions) for name, schema in properties.items()
            }
        case "array":
            items = schema.get("items", {})
            count = max(_ITEMS, schema.get("minItems", 0))
            return [instance_of(items, texts, definitions) for _ in range(count)]
        case "integer" | "number":
            return schema.get("maximum", schema.get("minimum", 1))
        case "boolean" | "null" as name:
            return True if name == "boolean" else None
    return next(texts)
