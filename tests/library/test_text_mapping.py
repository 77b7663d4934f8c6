import inspect

import pytest

from dagster_dataops import data_register
from dagster_dataops.errors import DefinitionError, NoTextError, SelectedElementError
from dagster_dataops.library.text_mapping import TextMapping, TextOperator


def test_a_text_is_replaced_or_written_elsewhere():
    assert TextMapping(str.upper, "text")({"text": "a", "id": 1}) == {"text": "A", "id": 1}
    assert TextMapping(len, "text", "length")({"text": "ab"}) == {"text": "ab", "length": 2}
    assert TextMapping(str.upper, ["a", "b"], ["b", "c"])({"a": "x", "b": "y"}) == {
        "a": "x",
        "b": "X",
        "c": "X",
    }


def test_selected_texts_are_replaced_in_their_places():
    mapping = TextMapping(str.upper, "meta.title,parts[*].body")
    record = {"meta": {"title": "a"}, "parts": [{"body": "b"}, {"body": None}]}

    assert mapping(record) == {"meta": {"title": "A"}, "parts": [{"body": "B"}, {"body": ""}]}
    with pytest.raises(DefinitionError, match="may select several"):
        TextMapping(str.upper, "parts[*].body", "body")


def test_a_missing_text_and_null_are_empty():
    mapping = TextMapping(len, "text", "length")

    assert mapping({}) == {"length": 0}
    assert mapping({"text": None}) == {"text": None, "length": 0}


@pytest.mark.parametrize("value", [1, True, ["a"], {"a": 1}])
def test_a_value_that_is_no_text_is_an_error(value):
    with pytest.raises(NoTextError, match="'text' is no text"):
        TextMapping(len, "text")({"text": value})
    with pytest.raises(SelectedElementError, match="no text"):
        TextMapping(len, "a.b")({"a": {"b": value}})


def test_an_operator_from_text_to_text_takes_its_keys_by_position_too():
    group = data_register.new_group("mapped")

    class Ended(TextOperator, group):
        def __init__(self, *args, mark="!", **kwargs):
            super().__init__(*args, **kwargs)
            self.mark = mark

        def changed(self, value):
            return value + self.mark

    assert Ended("a", "b", mark="?")([{"a": "x"}]) == [{"a": "x", "b": "x?"}]
    assert Ended()([{"text": "x"}]) == [{"text": "x!"}]
    assert str(inspect.signature(Ended)).startswith("(input_key: ")
