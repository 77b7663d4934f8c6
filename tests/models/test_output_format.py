"""Tests of dagster_dataops.models.output_format."""

from typing import Any

import pytest
from pydantic import BaseModel

from dagster_dataops.errors import DefinitionError
from dagster_dataops.models.output_format import OutputFormat, plain, strict


class Part(BaseModel):
    """A part."""

    size: int = 1


class Whole(BaseModel):
    """Parts."""

    name: str
    parts: list[Part]


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}


def test_a_model_is_sent_as_a_strict_schema():
    field = OutputFormat(Whole).field["json_schema"]

    assert isinstance(field, dict)
    assert field["name"] == "Whole"
    schema = field["schema"]
    assert schema["required"] == ["name", "parts"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Part"]["required"] == ["size"]


def test_a_text_becomes_an_instance_of_the_model():
    found = OutputFormat(Whole).parse('{"name": "x", "parts": [{"size": 2}]}')

    assert found == Whole(name="x", parts=[Part(size=2)])
    assert plain(found) == {"name": "x", "parts": [{"size": 2}]}


@pytest.mark.parametrize(
    ("form", "text", "place"),
    [
        (Whole, '{"name": "x", "parts": [{"size": "y"}]}', "parts.0.size: "),
        (SCHEMA, '{"a": "x"}', "a: "),
        (SCHEMA, "{", "."),
        (Whole, "no JSON", "."),
    ],
)
def test_a_wrong_text_is_an_error_that_says_where(form: Any, text: str, place: str):
    with pytest.raises(ValueError, match=place):
        OutputFormat(form).parse(text)


@pytest.mark.parametrize(
    "text",
    ['{"a": 1}', ' {"a": 1}\n', '```json\n{"a": 1}\n```', 'Here it is: {"a": 1}. Is it right?'],
)
def test_fences_and_prose_around_json_are_cut(text: str):
    assert OutputFormat(SCHEMA).parse(text) == {"a": 1}


def test_truncated_json_is_not_repaired():
    for text in ('Here: {"a": [1, 2', '{"a": 1'):
        with pytest.raises(ValueError, match="."):
            OutputFormat(SCHEMA).parse(text)


def test_a_property_may_have_the_name_of_a_keyword():
    schema = {"type": "object", "properties": {"properties": {"type": "string"}}}

    assert strict(schema) == schema | {"additionalProperties": False, "required": ["properties"]}


def test_the_field_of_a_request_is_sent_as_it_is_and_its_schema_is_checked():
    field = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}

    form = OutputFormat(field)

    assert form.field == field
    assert form.parse('{"a": 1}') == {"a": 1}
    with pytest.raises(ValueError, match="a: "):
        form.parse('{"a": "x"}')


def test_a_form_may_be_any_object():
    form = OutputFormat({"type": "json_object"})

    assert form.field == {"type": "json_object"}
    assert form.parse('{"b": []}') == {"b": []}
    with pytest.raises(ValueError, match="object"):
        form.parse("[1]")


@pytest.mark.parametrize("form", ["text", {"type": "nonsense"}, {"$ref": "https://example.org/x"}])
def test_anything_else_is_refused(form: Any):
    with pytest.raises(DefinitionError):
        OutputFormat(form)
