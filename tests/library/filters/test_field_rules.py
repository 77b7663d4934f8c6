import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError

RECORDS = [{"n": number, "meta": {"lang": lang}} for number, lang in enumerate(["en", "de", None])]


@pytest.mark.parametrize(
    ("key", "op", "value", "kept"),
    [
        ("n", "==", 1, [1]),
        ("n", "!=", 1, [0, 2]),
        ("n", "<", 1, [0]),
        ("n", "<=", 1, [0, 1]),
        ("n", ">", 1, [2]),
        ("n", ">=", 1, [1, 2]),
        ("meta.lang", "in", ["en", "fr"], [0]),
        ("meta.lang", "not in", ["en", "fr"], [1, 2]),
        ("meta.lang", "matches", "^d", [1]),
        ("meta.lang", "<", "e", [1]),
        ("meta.lang", "exists", None, [0, 1, 2]),
        ("meta.none", "exists", None, []),
        ("meta.none", "exists", False, [0, 1, 2]),
        ("meta.none", "==", None, []),
        ("meta.none", "!=", 1, [0, 1, 2]),
    ],
)
def test_fields_are_compared(key, op, value, kept):
    found = data.filters.Field(key, op, value, _missing="allow")(RECORDS)

    assert [record["n"] for record in found] == kept


def test_all_selected_elements_must_compare():
    records = [{"tags": ["a", "b"]}, {"tags": ["a", "c"]}, {"tags": []}]

    assert data.filters.Field("tags[*]", "in", ["a", "b"])(records) == records[:1]


def test_the_field_is_named_in_signal_and_reason():
    (record,) = data.filters.Field("n", ">", 1, mode="tag")([{"n": 0}])

    assert record == {"n": 0, "stats": {"field_n": False}, "drop_reason": "field_n"}


@pytest.mark.parametrize(("op", "value"), [("=", 1), ("in", 1), ("matches", "("), ("matches", 1)])
def test_invalid_comparisons_are_refused(op, value):
    with pytest.raises(DefinitionError):
        data.filters.Field("n", op, value)


def test_texts_are_searched_by_a_pattern():
    records = [{"text": "a1"}, {"text": "b"}]

    assert data.filters.Regex(r"\d")(records) == records[1:]
    assert data.filters.Regex(r"\d", keep="match")(records) == records[:1]
    assert data.filters.Regex(r"\d", mode="tag")(records)[0]["stats"] == {"regex_match": 1}
    with pytest.raises(DefinitionError, match="no regular expression"):
        data.filters.Regex("(")


def test_a_function_decides():
    assert data.filters.Lambda(lambda record: record["n"])(RECORDS) == RECORDS[1:]


@pytest.mark.cpu_timeout(60)
def test_re2_searches_in_linear_time():
    operator = data.filters.Regex("(a+)+$", engine="re2")

    assert operator.forward({"text": "a" * 50_000 + "b"})["text"]
    assert operator.forward({"text": "aa"}).reason == "regex_match"
    with pytest.raises(ValueError, match="lone surrogate at character 1, which re2 cannot read"):
        operator.forward({"text": "a\ud800"})
    assert data.filters.Regex("a").forward({"text": "a\ud800"}).reason == "regex_match"
