"""Tests of dagster_dataops.operators.definition.decorated_function."""

import asyncio
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


def test_a_call_with_only_options_constructs_the_operator():
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


def test_the_repr_shows_the_operator():
    assert repr(shout) == "<operator function functions.shout>"


def test_the_operator_has_forward_with_its_options_bound():
    operator = shout(input_key="body", mark="?")

    assert operator.forward({"body": "a"}) == {"body": "a?"}
    assert operator.forward({"body": "a"}, mark="!") == {"body": "a!"}


def test_an_async_operator_has_forward_as_a_coroutine_function(registry):
    @registry("data.functions")
    async def wait(data: dict, mark="!"):
        return {"text": data["text"] + mark}

    assert asyncio.run(wait(mark="?").forward({"text": "a"})) == {"text": "a?"}


def test_an_operator_of_all_records_has_forward_batch_input(registry):
    @registry.forward_batch_input("data.functions")
    def backwards(data: list[dict], step=-1):
        return data[::step]

    operator = backwards(step=-2)

    assert operator.forward_batch_input([{"n": n} for n in range(4)]) == [{"n": 3}, {"n": 1}]
    assert not hasattr(operator, "forward")
