"""Tests of dagster_dataops.operators.options.signature."""

from collections.abc import Iterable, Iterator
from typing import Any, List  # noqa: UP035 - as users of the reference write it

import pytest

from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.options.signature import (
    bind_options,
    count_inputs,
    options_of,
    parameters_of,
    takes_any,
    wants_iterator,
)


def names(function) -> list[str]:
    return [option.name for option in options_of(parameters_of(function), set())]


def inputs(function, *, dataset: bool) -> int:
    return count_inputs(parameters_of(function), dataset=dataset)


def bind(function, given: dict) -> dict:
    parameters = parameters_of(function)
    options = options_of(parameters[1:], set())
    return bind_options("demo.step", options, given, any_option=takes_any(parameters))


def sample(data, key, *, limit: int = 3, **more):
    return data, key, limit, more


def closed(data, key="text", output_key=None):
    return data, key, output_key


def test_options_are_the_parameters_that_can_be_given_by_keyword():
    def function(first, /, data, *rest, key=1, **more):
        return first, data, rest, key, more

    assert names(function) == ["data", "key"]


def test_annotations_written_as_text_are_resolved():
    def function(data: "list[dict]", rest: "Iterable[dict]"):
        return data, rest

    first, second = parameters_of(function)
    assert first.annotation == list[dict]
    assert wants_iterator(second)


def test_unresolvable_annotations_are_ignored():
    def function(data: "Nowhere", key: "AlsoNowhere" = 1):  # noqa: F821
        return data, key

    assert names(function) == ["data", "key"]


def test_a_record_operator_has_one_input():
    def function(data: dict, other: list, key=1):
        return data, other, key

    assert inputs(function, dataset=False) == 1


@pytest.mark.parametrize("annotation", [list, list[dict], List[dict], Iterable[dict]])  # noqa: UP006
def test_a_dataset_operator_joins_as_many_lists_as_it_starts_with(annotation):
    def function(left, right, key, third, limit=1):
        return left, right, key, third, limit

    function.__annotations__ = {"left": list, "right": annotation, "third": list}

    assert inputs(function, dataset=True) == 2


def test_a_parameter_with_a_default_is_an_option_not_an_input():
    def function(left: list, right: list = None):  # noqa: RUF013 - as users write it
        return left, right

    assert inputs(function, dataset=True) == 1


@pytest.mark.parametrize(
    ("annotation", "lazily"),
    [
        (Iterable[dict], True),
        (Iterator[dict], True),
        (Iterable, True),
        (list[dict], False),
        (Any, False),
    ],
)
def test_an_iterable_is_streamed_and_a_list_is_not(annotation, lazily):
    def function(data):
        return data

    function.__annotations__ = {"data": annotation}

    assert wants_iterator(parameters_of(function)[0]) is lazily


def test_options_are_bound_in_the_order_of_the_signature_with_their_defaults():
    assert list(bind(closed, {"output_key": "o"}).items()) == [("key", "text"), ("output_key", "o")]


def test_an_unknown_option_names_the_operator_the_option_and_the_nearest_known_one():
    with pytest.raises(OperatorOptionError) as caught:
        bind(closed, {"output_kye": "o"})

    assert caught.value.operator == "demo.step"
    assert caught.value.option == "output_kye"
    assert "did you mean 'output_key'?" in str(caught.value)
    assert "Its options: key, output_key" in str(caught.value)


def test_the_error_for_an_unknown_option_lists_the_options():
    with pytest.raises(OperatorOptionError, match=r"is unknown\. Its options: key, output_key"):
        bind(closed, {"zzzzz": 1})


def test_a_missing_option_is_named():
    with pytest.raises(OperatorOptionError, match="option 'key' is required and was not given"):
        bind(sample, {})


def test_further_options_are_taken_where_the_function_takes_any():
    assert bind(sample, {"key": "k", "extra": 1}) == {"key": "k", "limit": 3, "extra": 1}


@pytest.mark.parametrize(
    ("given", "meant"), [("text_fild", "text_field"), ("top_p", None), ("texts", None)]
)
def test_an_option_for_kwargs_that_looks_misspelt_is_logged(caplog, given, meant):
    def function(data, text_field="text", top_k=1, **more):
        return data, text_field, top_k, more

    assert bind(function, {given: 1})[given] == 1
    assert [record.levelname for record in caplog.records] == (["WARNING"] if meant else [])
    assert f"did you mean {meant!r}?" in caplog.text if meant else not caplog.text


def test_a_name_beside_a_similar_given_one_is_not_a_misspelling(caplog):
    def function(data, text_field="text", **more):
        return data, text_field, more

    bind(function, {"text_field": "a", "text_fields": "b"})

    assert not caplog.records
