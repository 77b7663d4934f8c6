"""Tests of dagster_dataops.models.placeholder."""

import asyncio
import json
from typing import Any

import jsonschema_rs
import pytest

from dagster_dataops.models.placeholder import Placeholder, instance_of


def replied(request: dict[str, Any]) -> dict[str, Any]:
    return asyncio.run(Placeholder().complete(request))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}},
        {"type": "integer", "minimum": 3, "maximum": 5},
        {"type": "number", "minimum": 3},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 5},
        {"enum": ["x", "y"]},
        {"const": 7},
        {"anyOf": [{"type": "null"}, {"type": "string"}]},
        {
            "$ref": "#/$defs/A",
            "$defs": {
                "A": {"type": "array", "items": {"$ref": "#/$defs/B"}},
                "B": {"type": "string"},
            },
        },
    ],
)
def test_an_instance_fits_its_schema(schema: dict[str, Any]):
    assert jsonschema_rs.is_valid(schema, instance_of(schema, iter("abcdefgh")))


def test_the_usage_is_estimated_from_characters_and_the_limit():
    messages = [{"role": "user", "content": "x" * 350}]

    limited = replied({"messages": messages, "max_tokens": 50})["usage"]
    unlimited = replied({"messages": messages})["usage"]

    assert limited == {"prompt_tokens": 100, "completion_tokens": 50}
    assert unlimited == {"prompt_tokens": 100, "completion_tokens": 1000}


def test_vectors_have_the_number_of_the_texts():
    assert [one["index"] for one in replied({"input": ["a", "b"]})["data"]] == [0, 1]


def test_other_requests_get_other_texts():
    schema = {"type": "array", "items": {"type": "string"}}
    asked = [{"messages": [{"role": "user", "content": text}]} for text in "ab"]
    form = {"response_format": {"json_schema": {"schema": schema}}}

    texts = [replied(one)["choices"][0]["message"]["content"] for one in asked]
    lists = [json.loads(replied(one | form)["choices"][0]["message"]["content"]) for one in asked]

    assert len({*texts, *lists[0], *lists[1]}) == 8
