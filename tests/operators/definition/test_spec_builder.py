"""Tests of dagster_dataops.operators.definition.spec_builder."""

import functools
from collections.abc import Iterable

import pytest

from dagster_dataops.errors import OperatorDefinitionError, OperatorOptionError


def spec_of(operator):
    return operator.__dataops_spec__


def test_a_function_is_a_record_operator_by_default(registry):
    @registry("data.definitions")
    def step(data: dict, key="text"):
        """Do it."""
        return data

    spec = spec_of(step.operator)
    assert (spec.kind.name, spec.inputs, spec.asynchronous) == ("record", 1, False)
    assert spec.qualified_name == "definitions.step"
    assert spec.description == "Do it."
    assert [option.name for option in spec.options] == ["key"]


def test_rewrite_func_makes_a_dataset_operator(registry):
    @registry("data.definitions", rewrite_func="forward_batch_input")
    def step(data: list[dict]):
        return data

    assert spec_of(step.operator).kind.name == "dataset"


@pytest.mark.parametrize("method", ["forward", "forward_batch_input"])
def test_the_methods_of_a_class_determine_its_kind(registry, method):
    group = registry.new_group("definitions")

    cls = type(group)("Step", (group,), {"__qualname__": "Step", method: lambda self, data: data})

    assert spec_of(cls).kind.name == ("record" if method == "forward" else "dataset")


def test_a_class_with_both_methods_is_refused(registry):
    with pytest.raises(OperatorDefinitionError, match=r"Both .*it has both of forward and"):

        class Both(registry.new_group("definitions")):
            def forward(self, data):
                return data

            def forward_batch_input(self, data):
                return data


def test_a_class_with_neither_method_is_refused(registry):
    with pytest.raises(OperatorDefinitionError, match=r"Neither .*define exactly one"):

        class Neither(registry.new_group("definitions")):
            pass


def test_both_methods_are_seen_through_inheritance(registry):
    class Parent(registry.new_group("definitions")):
        def forward(self, data):
            return data

    with pytest.raises(OperatorDefinitionError, match="both"):

        class Child(Parent):
            def forward_batch_input(self, data):
                return data


def test_a_lambda_is_refused_with_a_remedy(registry):
    with pytest.raises(OperatorDefinitionError, match=r"<lambda>.*write it as a `def`"):
        registry("data.definitions")(lambda data: data)


@pytest.mark.parametrize("thing", [3, "text", functools.partial(print), print, None])
def test_an_object_other_than_a_function_or_class_is_refused(registry, thing):
    with pytest.raises(OperatorDefinitionError):
        registry("data.definitions")(thing)


def test_a_function_that_takes_no_data_is_refused(registry):
    def nothing():
        return None

    def keyword_only(*, data):
        return data

    for function in (nothing, keyword_only):
        with pytest.raises(OperatorDefinitionError, match="first parameter must take one record"):
            registry("data.definitions")(function)


def test_a_dataset_operator_cannot_be_asynchronous(registry):
    async def step(data: list):
        return data

    with pytest.raises(OperatorDefinitionError, match="cannot be `async def`"):
        registry("data.definitions", rewrite_func="forward_batch_input")(step)


def test_an_asynchronous_function_is_recognized(registry):
    @registry("data.definitions")
    async def step(data: dict):
        return data

    assert step.operator().__dataops__.resolved.concurrency_mode == "async"


@pytest.mark.parametrize("name", ["_private", "set_output", "__call__", "größe"])
def test_names_that_cannot_name_an_operator_are_refused(registry, name):
    def step(data):
        return data

    step.__name__ = name

    with pytest.raises(OperatorDefinitionError):
        registry("data.definitions")(step)


def test_settings_of_the_class_are_settings_of_the_registration(registry):
    class Step(registry.new_group("definitions")):
        _concurrency_mode = "thread"
        _max_workers = 3

        def forward(self, data):
            return data

    resolved = Step().__dataops__.resolved
    assert (resolved.concurrency_mode, resolved.max_workers) == ("thread", 3)
    assert Step(_max_workers=5).__dataops__.resolved.max_workers == 5


def test_an_impossible_setting_of_a_class_is_refused_at_its_definition(registry):
    with pytest.raises(OperatorOptionError, match=r"definitions\.Step.*_concurrency_mode"):

        class Step(registry.new_group("definitions")):
            _concurrency_mode = "quick"

            def forward(self, data):
                return data


def test_parameters_of_init_and_of_forward_are_options(registry):
    class Step(registry.new_group("definitions")):
        def __init__(self, suffix, input_key="content", **kwargs):
            super().__init__(**kwargs)

        def forward(self, data, output_key="out", **kwargs):
            return data

    options = {option.name: option.required for option in spec_of(Step).options}
    assert options == {"suffix": True, "input_key": False, "output_key": False}


def test_a_static_forward_is_understood(registry):
    class Step(registry.new_group("definitions")):
        @staticmethod
        def forward(data, key="text"):
            return data

    assert [option.name for option in spec_of(Step).options] == ["key"]


def test_leading_lists_are_inputs_to_be_joined(registry):
    @registry("data.definitions", rewrite_func="forward_batch_input")
    def join(left: list[dict], right: Iterable[dict], key: str):
        return left

    spec = spec_of(join.operator)
    assert (spec.inputs, spec.streamed) == (2, (False, True))
    assert [option.name for option in spec.options] == ["key"]


def test_sketch_and_keep_make_a_selection_operator(registry):
    class Choose(registry.new_group("definitions")):
        def __init__(self, limit: int = 3, **kwargs):
            super().__init__(**kwargs)

        async def sketch(self, record):
            return 1

        def keep(self, sketches, scratch):
            yield from map(bool, sketches)

    spec = spec_of(Choose)
    assert (spec.kind.name, spec.inputs, spec.asynchronous) == ("selection", 1, True)
    assert [option.name for option in spec.options] == ["limit"]


def test_one_half_of_a_selection_is_refused(registry):
    for half in ("sketch", "keep"):
        group = registry.new_group("definitions")
        with pytest.raises(OperatorDefinitionError, match=f"sketch with keep.*it has only {half}"):
            type(group)("Half", (group,), {"__qualname__": "Half", half: lambda self, data: data})


def test_a_helper_method_of_that_name_is_allowed(registry):
    class Step(registry.new_group("definitions")):
        def forward(self, record):
            return self.keep(record)

        def keep(self, record):
            return record

    assert spec_of(Step).kind.name == "record"


def test_a_selection_with_other_methods_is_refused(registry):
    class Choose(registry.new_group("definitions")):
        def sketch(self, record):
            return 1

        def keep(self, sketches):
            return []

    with pytest.raises(OperatorDefinitionError, match="it has both of forward and sketch"):

        class Both(Choose):
            def forward(self, record):
                return record


@pytest.mark.parametrize(
    ("method", "function", "reason"),
    [
        ("sketch", lambda self, record, key: 1, "sketch must take one record and nothing else"),
        ("sketch", lambda self: 1, "its first parameter must take one record"),
        ("keep", lambda self, sketches, key: [], "keep must take the sketches, then `scratch`"),
        ("keep", lambda self: [], "its first parameter must take .*the sketches"),
    ],
)
def test_invalid_methods_of_a_selection_are_refused(registry, method, function, reason):
    group = registry.new_group("definitions")
    methods = {"sketch": lambda self, record: 1, "keep": lambda self, sketches: []}
    with pytest.raises(OperatorDefinitionError, match=reason):
        body = {"__qualname__": "Choose", **methods, method: function}
        type(group)("Choose", (group,), body)


def test_a_keep_method_cannot_be_asynchronous(registry):
    with pytest.raises(OperatorDefinitionError, match="keep cannot be `async def`; sketch can"):

        class Choose(registry.new_group("definitions")):
            def sketch(self, record):
                return 1

            async def keep(self, sketches):
                yield True


@pytest.mark.parametrize("method", ["forward", "forward_batch", "forward_window", "sketch_batch"])
def test_a_method_named_stream_makes_no_reader_of_an_operator_of_records(registry, method):
    members = {method: lambda self, records: records, "stream": lambda self: None}
    if method == "sketch_batch":
        members["keep"] = lambda self, sketches: sketches
    made = registry("data.definitions")(type("Step", (), members))
    assert made.__dataops_spec__.kind.by_record
