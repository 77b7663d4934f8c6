"""Shipped operators take selectors as ``input_key``."""

import inspect

import pytest

from dagster_dataops import data
from dagster_dataops.errors import (
    DefinitionError,
    NoTextError,
    SelectedElementError,
    SelectorSyntaxError,
)


def record(lang: str, *bodies: str) -> dict:
    return {"meta": {"lang": lang}, "texts": [{"body": body} for body in bodies]}


def test_texts_below_a_selector_are_normalized_in_place():
    operator = data.text.Normalize(input_key="meta.lang,texts[*].body")

    assert operator([record(" en ", "a  b", " c")]) == [record("en", "a b", "c")]


def test_a_selected_text_is_written_to_an_output_key():
    operator = data.text.Normalize(input_key="meta.lang", output_key="lang")

    assert operator([record(" en ")]) == [{**record(" en "), "lang": "en"}]
    with pytest.raises(DefinitionError, match="may select several"):
        data.text.Normalize(input_key="texts[*].body", output_key="body")


def test_filters_read_all_selected_elements():
    kept, dropped = record("en", "ab", "cd"), record("en", "a")

    assert data.text.LengthFilter(min_chars=4, input_key="texts[*].body")([kept, dropped]) == [kept]
    letters = data.text.LetterRatioFilter(min_ratio=0.9, input_key="texts[*].body,meta.lang")
    assert letters([kept, record("11", "22")]) == [kept]


def test_a_selected_text_is_split_in_place():
    pieces = data.text.Chunk(max_chars=2, input_key="meta.lang")([{"meta": {"lang": "abcd"}}])

    assert pieces == [{"meta": {"lang": "ab"}, "chunk": 0}, {"meta": {"lang": "cd"}, "chunk": 1}]
    with pytest.raises(DefinitionError, match="may select several"):
        data.text.Chunk(input_key="texts[*].body")


def test_duplicates_are_found_by_selected_elements():
    first, again, other = record("en", "a", "b"), record("de", "a", "b"), record("en", "b", "a")

    assert data.dedup.Exact(input_key="texts[*].body")([first, again, other]) == [first, other]
    both = data.dedup.Exact(input_key=["meta.lang", "texts[0].body"])
    assert both([first, again, other]) == [first, again, other]
    allowed = data.dedup.Exact(input_key="meta.none", _missing="allow")
    assert allowed([first, again]) == [first]


def test_a_malformed_selector_is_refused_where_the_operator_is_made():
    with pytest.raises(SelectorSyntaxError, match="column 6"):
        data.text.LengthFilter(input_key="texts[0")


@pytest.mark.parametrize(
    "make",
    [
        lambda: data.dedup.Exact([]),
        lambda: data.join.Merge(on=[]),
        lambda: data.sample.Sort([]),
        lambda: data.text.Normalize([]),
    ],
)
def test_an_empty_list_of_keys_is_refused(make):
    with pytest.raises(DefinitionError, match="name at least one column"):
        make()


def test_a_record_without_the_selected_element_is_an_error_row(root):
    operator = data.text.LengthFilter(input_key="meta.lang")

    assert operator([record("en"), {"meta": {}}]) == [record("en")]
    (path,) = root.rglob("*_error.jsonl")
    assert "no element at path 'meta.lang'" in path.read_text()


@pytest.mark.parametrize("value", [0, 1.5, True, ["a"], {"a": "b"}])
def test_a_value_that_is_no_text_is_an_error(value):
    message = "The value of key 'text' is no text but of type"
    for operator in (data.text.LengthFilter(), data.text.Normalize()):
        with pytest.raises(NoTextError, match=message):
            operator.forward({"text": value})
    with pytest.raises(NoTextError, match=r"key 'a\.b'"):
        data.text.LengthFilter(input_key="a.b").forward({"a": {"b": value}})
    with pytest.raises(SelectedElementError, match="no text"):
        data.text.Normalize("a.b").forward({"a": {"b": value}})


def test_missing_and_null_are_the_empty_text():
    def length(key, record):
        tagged = data.filters.TextLength(mode="tag", input_key=key).forward(record)
        return tagged["stats"]["text_len"]

    assert length("text", {}) == length("text", {"text": None}) == 0
    assert length("a.b,c", {"a": {"b": None}, "c": "x"}) == len("\nx")
    normalize = data.text.Normalize("meta.title,parts[*].body")
    record = {"meta": {"title": " a"}, "parts": [{"body": "b "}, {"body": None}]}
    cleaned = {"meta": {"title": "a"}, "parts": [{"body": "b"}, {"body": ""}]}
    assert normalize([record]) == [cleaned]
    assert data.text.Normalize().forward({}) == {"text": ""}
    assert data.text.Normalize(output_key="b").forward({"text": None}) == {"text": None, "b": ""}


def test_several_texts_are_written_in_the_order_of_the_keys():
    operator = data.text.Normalize(["a", "b"], ["b", "c"])

    assert operator([{"a": " x", "b": "y"}]) == [{"a": " x", "b": "x", "c": "x"}]
    assert data.text.Normalize("a", "b")([{"a": " x"}]) == [{"a": " x", "b": "x"}]
    assert str(inspect.signature(data.text.Normalize)).startswith("(input_key: ")
