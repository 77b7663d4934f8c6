"""Tests of dagster_dataops.models.output_format, and of json_values which it looks into."""

import json
import random
import time
from typing import Any

import pytest
from pydantic import BaseModel

from dagster_dataops.errors import DefinitionError
from dagster_dataops.models.json_values import json_texts, json_value
from dagster_dataops.models.output_format import OutputFormat, plain, strict
from tests.each import each


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
        (SCHEMA, 'Here: {"a": [1, 2', "."),
        (SCHEMA, '{"a": 1', "."),
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


FOOD = '{"label":"food"}'
LABEL: dict[str, Any] = {
    "type": "object",
    "properties": {"label": {"enum": ["food", "travel"]}},
    "required": ["label"],
}
SIZE = 100_000  # characters of a hostile text
SECONDS = 3.0  # of CPU for a scan; one whose time grows with the square takes hours


@each(
    "text",
    [
        FOOD,
        f"  {FOOD}\n",
        f"{FOOD}\n\nHope this helps!",
        f"Sure! {FOOD}\n\nHope this helps!",
        f"{FOOD}<|im_end|>",
        f"{FOOD}</s>",
        f"{FOOD}<|eot_id|>\n",
        f"{FOOD}<end_of_turn>",
        f"As in [1], {FOOD}",
        f"As in [1] and {{2}}, {FOOD}",
        f"```json\n{FOOD}\n```\nI used {{x}}.",
        f"```\n{FOOD}\n```",
        f"~~~json\n{FOOD}\n~~~",
        f"<think>\nOptions [food, travel]\n</think>\n\n{FOOD}",
        f'<think>maybe {{"label":"travel"}}</think>{FOOD}',
        f'maybe {{"label":"travel"}}\n</think>\n{FOOD}',
        f'<think>a</think><think>{{"label":"travel"}}</think> {FOOD}',
        f'<thinking>{{"label":"travel"}}</thinking>{FOOD}',
        f'[THINK]{{"label":"travel"}}[/THINK]{FOOD}',
        f'<|channel|>analysis<|message|>{{"label":"travel"}}<|end|><|channel|>final<|message|>{FOOD}',
        f"The labels are {{food, travel}}: {FOOD}",
        f"Use {{see {FOOD}",
        f'The brace "{{" begins it: {FOOD}',
        f'Form: {{"label": one of "food" or "travel"}}. {FOOD}',
        f'{{"other": 1}} no: {FOOD}',
        f'{{"label": "sport"}} no: {FOOD}',
        f"[{FOOD}]",
        f"{FOOD}\n{FOOD}",
        f"標籤 {FOOD} 好",
        f"Réponse « {FOOD} »",
        '{"label" : "food" , "why": "a } and a { and \\" in a text"} ok',
        '{"label":"food","why":"ends with </think> in a text"}',
        '{\n  "label": "food",\n  "nested": {"a": [1, {"b": null}]}\n}\nDone.',
        "\ufeff" + FOOD,
    ],
)
def test_the_value_that_fits_is_found_in_what_is_around_it(text: str):
    assert OutputFormat(LABEL).parse(text)["label"] == "food"


@each(
    "text",
    [
        "",
        "no JSON",
        '{"label": "food"',
        '{"label": "food",}',
        "{'label': 'food'}",
        '{label: "food"}',
        '{"label": "food" // a comment\n}',
        '{"label": NaN}',
        '{"label": "fo\nod"}',
        '<think>{"label": "food"}</think> I cannot tell.',
        '<think>{"label": "food"}',
        '{"result": {"label": "food"}}',
        '{"result": oops, "more": {"label": "food"}}',
        '{"a": {"label": "food"}, "b": [',
        '{"a": True, "b": {"label": "food"}}',
    ],
)
def test_nothing_is_repaired_and_no_part_of_a_faulty_value_is_taken(text: str):
    with pytest.raises(ValueError, match="."):
        OutputFormat(LABEL).parse(text)


def test_lists_and_objects_are_looked_for_by_the_form():
    lists = OutputFormat({"type": "array", "items": {"type": "string"}})
    either = OutputFormat({"anyOf": [{"type": "array"}, {"type": "object"}]})

    assert lists.parse('{"a": 1} so ["x", "y"].') == ["x", "y"]
    assert lists.parse('[food] so ["x"].') == ["x"]
    assert either.parse("so [1] or {}") == [1]
    with pytest.raises(ValueError, match="no JSON list"):
        lists.parse("none")


@each("form", [{"enum": ["food", "travel"]}, {"type": "string"}, {"const": "food"}, {}])
def test_a_form_without_brackets_takes_the_whole_text_or_a_fence(form: dict[str, Any]):
    for text in ('"food"', ' "food"\n', '"food"<|im_end|>', '```json\n"food"\n```\nDone.'):
        assert OutputFormat(form).parse(text) == "food"


def test_the_form_may_be_behind_a_reference():
    form = {"$ref": "#/$defs/Label", "$defs": {"Label": LABEL}}

    assert OutputFormat(form).parse(f"As in [1], {FOOD}") == {"label": "food"}


def test_the_fault_of_the_first_value_is_told():
    with pytest.raises(ValueError, match="label"):
        OutputFormat(LABEL).parse('Sure: {"label": "sport"} or so {x}')


def test_whole_numbers_of_any_size_stay_whole():
    number = 2**70

    assert json_value(f'{{"n": {number}}}') == {"n": number}
    assert OutputFormat({"type": "object"}).parse(f'n: {{"n": {number}}}') == {"n": number}
    with pytest.raises(ValueError, match="."):
        json_value('{"n": Infinity}')


def test_the_values_are_those_that_a_json_parser_finds():
    chance = random.Random(7)

    def value(depth: int) -> Any:
        kind = chance.randrange(7 if depth else 5)
        if kind == 5:
            return [value(depth - 1) for _ in range(chance.randrange(4))]
        if kind == 6:
            return {chance.choice('a"{[\\é'): value(depth - 1) for _ in range(chance.randrange(4))}
        return chance.choice(['}{"', "]", 1.5e-7, -0.0, True, None, "\\", "\n", 12, "日本"])

    for _ in range(300):
        made = {"v": value(4)}
        text = json.dumps(made, ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, 1]))
        found = list(json_texts(f"see: {text} ."))
        assert [json.loads(one) for one in found] == [made]


HOSTILE = [
    "[" * SIZE,
    "{" * SIZE,
    '{"a":' * (SIZE // 5),
    '["' * (SIZE // 2),
    '{"' * (SIZE // 2),
    "[1," * (SIZE // 3),
    '["\\"[' * (SIZE // 5),
    '"' * SIZE,
    '{"a":"' + "{" * SIZE,
    '{"a":1}' * (SIZE // 7),
    '{"a":1,}' * (SIZE // 8),
    "[[]," * (SIZE // 4),
    "</think>{" * (SIZE // 9),
    "<think>" * (SIZE // 7),
    "```\n" * (SIZE // 4),
    "{ " * (SIZE // 2),
    "\\" * SIZE,
    "<|" * (SIZE // 2),
    "<|im_end|>" * (SIZE // 10),
    " " * SIZE + "{",
    ("{" + " " * 100) * (SIZE // 100),
]


@pytest.mark.slow
@each("number", range(len(HOSTILE)))
def test_the_time_of_a_scan_grows_with_the_length(number: int):
    begun = time.process_time()

    for scalars in (False, True):
        for _ in json_texts(HOSTILE[number], scalars=scalars):
            pass

    assert time.process_time() - begun < SECONDS, HOSTILE[number][:40]


def test_a_value_after_a_hostile_text_is_found():
    for hostile in ("[" * SIZE, "{ " * SIZE, "{x} [y] " * 1000):
        assert OutputFormat(LABEL).parse(f"{hostile} {FOOD}") == {"label": "food"}
