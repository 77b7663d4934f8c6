import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import Drop, data
from dagster_dataops.errors import DefinitionError, UnfitRecordError

KEYS = st.text("ab", max_size=2)
VALUES = st.recursive(
    st.sampled_from([None, 1, "x", [], [{"a": 1}], {}]),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.dictionaries(KEYS, VALUES, max_size=4)


@given(RECORDS, st.sampled_from([".", "__"]))
def test_flattening_and_back_is_the_identity(record, sep: str) -> None:
    flat = data.shape.Flatten(sep).forward(record)
    assert not any(value and isinstance(value, dict) for value in flat.values())
    back = data.shape.Unflatten(sep).forward(flat)
    assert back == record
    assert list(back) == list(record)


def test_some_columns_are_flattened() -> None:
    record = {"a": {"b": {"c": 1}}, "d": {"e": [{"f": 1}]}}
    assert data.shape.Flatten()([record]) == [{"a.b.c": 1, "d.e": [{"f": 1}]}]
    assert data.shape.Flatten(keys="a").forward(record) == {"a.b.c": 1, "d": record["d"]}


def test_keys_that_cannot_come_back_are_errors() -> None:
    for record in ({"a.b": 1}, {"a": {"b.c": 1}}):
        with pytest.raises(ValueError, match="separator"):
            data.shape.Flatten().forward(record)
    for record in ({"a": 1, "a.b": 2}, {"a.b": 2, "a": 1}, {"a": {"b": 1}, "a.c": 2}):
        with pytest.raises(ValueError, match="twice"):
            data.shape.Unflatten().forward(record)
    with pytest.raises(DefinitionError, match="sep"):
        data.shape.Flatten("")


def test_deep_dicts_are_flattened() -> None:
    record: dict = {"a": 1}
    for _ in range(5000):
        record = {"a": record}
    assert list(data.shape.Flatten().forward(record)) == [".".join("a" * 5001)]


def test_each_element_makes_a_record() -> None:
    operator = data.shape.Explode("items")
    assert operator([{"id": 1, "items": ["a", "b"]}, {"id": 2, "items": []}, {"id": 3}]) == [
        {"id": 1, "items": "a", "index": 0},
        {"id": 1, "items": "b", "index": 1},
    ]
    found = operator.forward({"items": None})
    assert isinstance(found, Drop)
    assert found.reason == "empty"
    kept = data.shape.Explode("items", "item", keep_empty=True, index_key=None)
    assert kept.forward({"items": []}) == {"items": [], "item": None}
    assert kept.forward({"items": [1]}) == [{"items": [1], "item": 1}]


def test_elements_are_merged() -> None:
    operator = data.shape.Explode("qa", merge=True, index_key="n")
    assert operator.forward({"id": 1, "qa": [{"q": 1}, {"q": 2, "id": 5}]}) == [
        {"id": 1, "q": 1, "n": 0},
        {"id": 5, "q": 2, "n": 1},
    ]
    with pytest.raises(UnfitRecordError, match="no dict"):
        operator.forward({"qa": [1]})
    with pytest.raises(DefinitionError, match="output_key"):
        data.shape.Explode("qa", "one", merge=True)


def test_a_nested_list_is_exploded() -> None:
    operator = data.shape.Explode("doc.items", index_key=None)
    assert operator.forward({"doc": {"items": [1, 2]}}) == [
        {"doc": {"items": 1}},
        {"doc": {"items": 2}},
    ]
    with pytest.raises(UnfitRecordError, match="no list"):
        operator.forward({"doc": {"items": "ab"}})
    with pytest.raises(DefinitionError, match="several"):
        data.shape.Explode("docs[*].items")
