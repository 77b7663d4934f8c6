"""Tests of dagster_dataops.operators.function."""

import inspect
import pickle

import pytest

from dagster_dataops import Operator, data_register
from dagster_dataops.errors import OperatorOptionError


@data_register("data.functions", _concurrency_mode="single")
def shout(data: dict, input_key="text", mark="!"):
    """Add a mark."""
    data[input_key] += mark
    return data


def test_called_with_a_record_it_is_the_plain_function():
    assert shout({"text": "a"}) == {"text": "a!"}
    assert shout({"body": "a"}, "body", mark="?") == {"body": "a?"}
    assert shout(data={"text": "a"}) == {"text": "a!"}


def test_called_with_options_alone_it_constructs_the_operator():
    operator = shout(mark="?", _max_workers=3)

    assert isinstance(operator, Operator)
    assert operator([{"text": "a"}]) == [{"text": "a?"}]


def test_called_with_nothing_it_constructs_the_operator():
    assert isinstance(shout(), Operator)


def test_a_misspelt_option_is_refused():
    with pytest.raises(OperatorOptionError, match="did you mean 'mark'"):
        shout(mrak="?")


def test_name_docstring_and_signature_stay():
    assert shout.__name__ == "shout"
    assert shout.__doc__ == "Add a mark."
    assert list(inspect.signature(shout).parameters) == ["data", "input_key", "mark"]
    assert inspect.getsource(inspect.unwrap(shout)).startswith("@data_register")


def test_it_pickles_by_reference():
    assert pickle.loads(pickle.dumps(shout)) is shout


def test_it_can_be_registered_in_a_second_group(registry):
    again = registry("data.elsewhere")(shout)

    assert again.operator.__dataops_spec__.qualified_name == "elsewhere.shout"
    assert again.function is shout.function
    assert shout.operator.__dataops_spec__.qualified_name == "functions.shout"


def test_one_operator_may_call_another_as_a_function(registry):
    @registry("data.elsewhere", _concurrency_mode="single")
    def twice(data: dict):
        return shout(shout(data))

    assert twice.operator()({"text": "a"}) == [{"text": "a!!"}]


def test_it_shows_what_it_is():
    assert repr(shout) == "<operator function functions.shout>"
