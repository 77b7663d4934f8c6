"""Tests of operators as functions of their data."""

from dagster_dataops.operators.bound_methods import plain_function, record_function


def test_a_function_is_called_as_written_where_no_option_was_given(registry):
    @registry("data.calls")
    def step(data: dict, keys=("a", "b")):
        return {"keys": list(keys)}

    assert record_function(step.operator()) is step.function
    # an equal option, even one that can be changed, is not the default
    assert record_function(step.operator(keys=["a", "b"]))({}) == {"keys": ["a", "b"]}


def test_options_of_init_are_not_given_to_forward_again(registry):
    class Step(registry.new_group("calls")):
        def __init__(self, suffix="!", **kwargs):
            super().__init__(**kwargs)
            self.suffix = suffix

        def forward(self, data, **more):
            return {"suffix": self.suffix, "more": more}

    assert record_function(Step(suffix="?"))({}) == {"suffix": "?", "more": {}}


def test_a_dataset_function_takes_as_many_datasets_as_it_joins(registry):
    @registry("data.calls", rewrite_func="forward_batch_input")
    def join(left: list[dict], right: list[dict], order=1):
        return [*left, *right][::order]

    bound = plain_function(join.operator(order=-1))
    assert bound([{"n": 1}], [{"n": 2}]) == [{"n": 2}, {"n": 1}]
