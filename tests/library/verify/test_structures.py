import pickle

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError


def test_a_text_matches_a_pattern() -> None:
    def valid(text: str, **options) -> bool:
        return data.verify.Regex("a+", **options).forward({"text": text})["valid"]

    assert valid("bab")
    assert not valid("bab", match="full")
    assert valid("aa", match="full")
    assert not valid("bab", negate=True)
    assert data.verify.Regex("a", mode="drop").forward({"text": "b"}).reason == "no_match"
    assert data.verify.Regex("b", mode="drop", negate=True).forward({"text": "b"}).reason == "match"
    with pytest.raises(DefinitionError, match="no regular expression"):
        data.verify.Regex("(")
    with pytest.raises(DefinitionError, match="match"):
        data.verify.Regex("a", match="start")


@pytest.mark.cpu_timeout(60)
def test_re2_matches_in_linear_time() -> None:
    operator = data.verify.Regex("(a+)+", engine="re2", match="full")
    assert not operator.forward({"text": "a" * 50_000 + "b"})["valid"]
    assert operator.forward({"text": "aa"})["valid"]


@pytest.mark.parametrize(
    ("text", "value", "reason"),
    [
        ('{"a": [1]}', {"a": [1]}, None),
        ("null", None, None),
        ('Here:\n```json\n{"a": 1}\n```\nDone.', {"a": 1}, None),
        ("Here:\n```\n[1]\n```", [1], None),
        ("```py\nx\n```\n\n~~~\n[1]\n~~~\n", [1], None),
        ('{"a": 1', None, "no_json"),
        ("[NaN]", None, "no_json"),
        ("[" * 100_000, None, "no_json"),
        ('"\ud800"', None, "no_json"),
        (" ", None, "empty"),
        (None, None, "empty"),
    ],
)
def test_json_is_parsed(text: str | None, value, reason: str | None) -> None:
    found = data.verify.Json().forward({"text": text})
    assert found["parsed"] == value
    assert found["valid"] is (reason is None)
    assert (found["error"] is None) is (reason is None)
    dropped = data.verify.Json(mode="drop", parsed_key=None).forward({"text": text})
    assert dropped == {"text": text} if reason is None else dropped.reason == reason


SCHEMA = {
    "type": "object",
    "required": ["items"],
    "properties": {"items": {"items": {"properties": {"price": {"minimum": 0}}}}},
}


def test_a_record_is_checked_by_a_schema() -> None:
    operator = data.verify.JsonSchema(SCHEMA)
    found = operator([{"items": [{"price": 1}, {"price": -1}]}, {"items": []}, {}])
    assert [record["valid"] for record in found] == [False, True, False]
    assert found[0]["error"].startswith("$.items[1].price: -1 ")
    assert found[1]["error"] is None
    assert found[2]["error"].startswith("$: ")
    dropped = data.verify.JsonSchema({"type": "string"}, "a.b", mode="drop")
    assert dropped.forward({"a": {"b": "c"}}) == {"a": {"b": "c"}}
    assert dropped.forward({"a": {}}).reason == "schema"
    assert pickle.loads(pickle.dumps(operator._checked))({}) is not None


def test_schemas_that_cannot_be_used_are_refused() -> None:
    for schema in ({"type": "text"}, {"$ref": "https://example.com/schema.json"}):
        with pytest.raises(DefinitionError, match="no valid JSON Schema"):
            data.verify.JsonSchema(schema)


@pytest.mark.parametrize(
    ("pattern", "said"), [("(", "is no regular expression"), (5, "must be str")]
)
@pytest.mark.parametrize("name", ["verify.Regex", "text.RemoveLinks", "filters.Regex"])
def test_a_pattern_that_is_no_regular_expression_is_refused(
    name: str, pattern: object, said: str
) -> None:
    group, _, operator = name.partition(".")
    with pytest.raises(DefinitionError, match=said):
        getattr(getattr(data, group), operator)(pattern=pattern)


def test_columns_are_required_and_typed() -> None:
    operator = data.verify.Fields(
        ["a", "b.c"], {"n": "int", "x": "float", "f": "bool"}, non_empty=True
    )

    def fault(record) -> str | None:
        return operator.forward(record)["error"]

    good = {"a": "x", "b": {"c": [0]}}
    assert fault({**good}) is None
    assert fault({**good, "n": 1, "x": 1, "f": True}) is None
    assert fault({"a": "x", "b": {}}) == "b.c is missing"
    assert fault({**good, "a": None}) == "a is missing"
    assert fault({**good, "a": " "}) == "a is empty"
    assert fault({"a": "x", "b": {"c": []}}) == "b.c is empty"
    assert fault({**good, "n": True}) == "n is bool, not int"
    assert fault({**good, "n": 1.0}) == "n is float, not int"
    reasons = [
        data.verify.Fields("a", {"a": "str"}, non_empty=True, mode="drop").forward(record).reason
        for record in ({}, {"a": ""}, {"a": 1})
    ]
    assert reasons == ["missing", "empty", "wrong_type"]
    with pytest.raises(DefinitionError, match="required or types"):
        data.verify.Fields()
    with pytest.raises(DefinitionError, match="use one of"):
        data.verify.Fields(types={"a": "text"})
