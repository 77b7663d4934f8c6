"""Tests of operators as functions of their data."""

import asyncio
import inspect

from dagster_dataops.operators.bound_methods import plain_function, record_function


def test_a_function_is_called_as_written_where_no_option_was_given(registry):
    @registry("data.calls")
    def step(data: dict, key="text"):
        return data

    assert record_function(step.operator()) is step.function


def test_options_are_bound(registry):
    @registry("data.calls")
    def step(data: dict, key="text", *, limit=1):
        return {key: limit}

    assert record_function(step.operator(key="body", limit=2))({}) == {"body": 2}


def test_further_options_reach_a_function_with_kwargs(registry):
    @registry("data.calls")
    def step(data: dict, **options):
        return options

    assert record_function(step.operator(colour="red"))({}) == {"colour": "red"}


def test_options_of_init_are_not_given_to_forward_again(registry):
    class Step(registry.new_group("calls")):
        def __init__(self, suffix="!", **kwargs):
            super().__init__(**kwargs)
            self.suffix = suffix

        def forward(self, data, **more):
            return {"suffix": self.suffix, "more": more}

    assert record_function(Step(suffix="?"))({}) == {"suffix": "?", "more": {}}


def test_options_of_forward_are_given_to_it(registry):
    class Step(registry.new_group("calls")):
        def forward(self, data, key="text"):
            return {"key": key}

    assert record_function(Step(key="body"))({}) == {"key": "body"}


def test_an_option_equal_to_a_mutable_default_is_not_shared_by_mistake(registry):
    @registry("data.calls")
    def step(data: dict, keys=("a", "b")):
        return {"keys": list(keys)}

    assert record_function(step.operator(keys=["a", "b"]))({}) == {"keys": ["a", "b"]}


def test_a_coroutine_function_stays_one(registry):
    @registry("data.calls")
    async def step(data: dict, key="text"):
        return {key: 1}

    bound = record_function(step.operator(key="body"))

    assert inspect.iscoroutinefunction(bound)
    assert asyncio.run(bound({})) == {"body": 1}


def test_a_dataset_function_takes_as_many_datasets_as_it_joins(registry):
    @registry("data.calls", rewrite_func="forward_batch_input")
    def join(left: list[dict], right: list[dict], order=1):
        return [*left, *right][::order]

    bound = plain_function(join.operator(order=-1))
    assert bound([{"n": 1}], [{"n": 2}]) == [{"n": 2}, {"n": 1}]


def test_a_static_forward_is_called_without_an_instance(registry):
    class Step(registry.new_group("calls")):
        @staticmethod
        def forward(data, key="text"):
            return {key: 1}

    assert record_function(Step(key="body"))({}) == {"body": 1}
