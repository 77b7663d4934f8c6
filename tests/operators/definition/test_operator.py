"""Tests of operators: groups, options, functions, options by position."""

import asyncio
import copy
import inspect
import itertools
import pickle
import pydoc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import Operator, config, data, data_register, pipeline
from dagster_dataops.errors import OperatorDefinitionError, OperatorOptionError
from tests.each import each
from tests.nodes import ExecutionSettings, reconfigured
from tests.registries import OperatorRegistry
from tests.sent_operators import receive, ship


@pytest.fixture
def step(registry):
    @registry("data.construction", _concurrency_mode="thread", _max_workers=7)
    def step(data: dict, input_key="text", output_key=None):
        return data

    return registry.group("construction").step


@pytest.fixture
def group(registry):
    return registry.new_group("construction")


def settings_of(operator):
    return operator.__dataops__.resolved


def test_options_are_bound_when_constructed(step):
    assert dict(step(output_key="out").__dataops__.options) == {
        "input_key": "text",
        "output_key": "out",
    }


@each(
    "case",
    [
        ({"inptu_key": "text"}, r"construction\.step.*'inptu_key'.*did you mean 'input_key'"),
        ({"_max_worker": 3}, "did you mean '_max_workers'"),
        ({"_concurrency_mode": "threads"}, r"construction\.step.*'_concurrency_mode'"),
        ({"_concurrency_mode": "async"}, "needs an `async def` operator"),
    ],
)
def test_a_wrong_option_is_refused_when_constructed(step, case):
    options, said = case
    with pytest.raises(OperatorOptionError, match=said):
        step(**options)
    with pytest.raises(OperatorOptionError, match=r"given by keyword \(input_key=\.\.\.\)"):
        step("text")
    with pytest.raises(OperatorOptionError, match="did you mean 'output_key'"):
        reconfigured(step(), {"outptu_key": "b"}, ExecutionSettings())


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("max_workers", "_max_workers"),
        ("workers", "_max_workers"),
        ("concurrency_mode", "_concurrency_mode"),
        ("timeout", "_timeout"),
    ],
)
def test_a_setting_without_its_underscore_names_the_setting(step, group, name, setting):
    class Plain(group):
        def forward(self, data):
            return data

    class Passing(group):
        def __init__(self, text="a"):
            super().__init__(**{name: 3})

        def forward(self, data):
            return data

    for construct in (lambda: step(**{name: 3}), lambda: Plain(**{name: 3}), Passing):
        with pytest.raises(
            OperatorOptionError, match=f"did you mean the execution setting '{setting}"
        ):
            construct()


def test_an_option_is_nearer_than_a_setting(group):
    class Waits(group):
        def __init__(self, time_out=1, **kwargs):
            super().__init__(**kwargs)

        def forward(self, data):
            return data

    with pytest.raises(OperatorOptionError, match="did you mean 'time_out'"):
        Waits(timeout=3)


class TestByPosition:
    """Tests that classes take the positional arguments of their ``__init__``."""

    @pytest.fixture
    def step(self, group):
        class Step(group):
            def __init__(self, suffix, input_key="text", *, loud=False, **kwargs):
                super().__init__(**kwargs)
                self.given = (suffix, input_key, loud)

            def forward(self, data):
                return data

        return Step

    def test_options_are_bound_in_the_order_of_init(self, step):
        operator = step("!", "title", loud=True, _max_workers=3)

        assert operator.given == ("!", "title", True)
        assert dict(operator.__dataops__.options) == {
            "suffix": "!",
            "input_key": "title",
            "loud": True,
        }
        assert settings_of(operator).max_workers == 3
        by_name = step(suffix="!", input_key="title", loud=True)
        assert operator.__dataops__.options_digest == by_name.__dataops__.options_digest

    def test_a_registered_plain_class_does_so_too(self, registry):
        @registry("data.construction")
        class Plain:
            def __init__(self, suffix):
                self.suffix = suffix

            def forward(self, data):
                return data

        assert Plain("!").suffix == "!"

    def test_arguments_passed_on_are_those_of_the_class_above(self, step):
        class Further(step):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, **kwargs)

        assert Further("!", "title").given == ("!", "title", False)

    def test_an_option_given_twice_is_refused(self, step):
        with pytest.raises(OperatorOptionError, match="'suffix' was given twice"):
            step("!", suffix="?")

    def test_one_too_many_is_refused_and_the_value_is_not_shown(self, step):
        with pytest.raises(OperatorOptionError, match=r"takes 2 by position \(suffix, input_key\)"):
            step("!", "text", True)
        with pytest.raises(OperatorOptionError) as caught:
            step("!", "text", "sk-secret")
        assert "sk-secret" not in str(caught.value)

    def test_records_given_to_a_class_without_options_are_refused_with_how_to_run_it(self, group):
        class Bare(group):
            def forward(self, data):
                return data

        with pytest.raises(OperatorOptionError, match="call the constructed operator"):
            Bare([{"text": "a"}])


def test_dir_of_a_group_is_its_operators():
    assert dir(data.text)[:2] == ["Chunk", "CollapseNewlines"]


def test_dir_of_an_operator_is_what_users_call():
    shown = dir(data.text.LengthFilter)

    assert {"__call__", "forward", "set_output"} <= set(shown)
    assert [name for name in shown if name.startswith("_")] == ["__call__"]


def test_help_of_a_group_begins_with_a_line_for_each_operator(group):
    class First(group):
        """Keep all records.

        Every time.
        """

        def forward(self, data):
            return data

    name = group.__dataops_group__
    registry = group.__dataops_registry__
    assert (
        registry.group(name).__doc__
        == f"The operators of group {name}.\n\n- First: Keep all records."
    )

    class Second(group):
        """Drop nothing."""

        def forward(self, data):
            return data

    assert registry.group(name).__doc__.endswith(
        "\n- First: Keep all records.\n- Second: Drop nothing."
    )


def test_help_of_the_library_describes_groups_and_operators():
    group = pydoc.plain(pydoc.render_doc(data.dedup))
    operator = pydoc.plain(pydoc.render_doc(data.filters.GopherQuality))

    assert "Group ``dedup``: operators that remove repeated records" in group
    assert " |  - Exact: Keep the first record of each value of ``input_key``" in group
    assert "min_words: int | None = 50" in operator
    assert " |  Keep texts that look like prose, by the quality rules of Gopher.\n" in operator
    assert "__init__" not in operator


def test_the_signature_of_an_operator_has_its_options_and_room_for_settings():
    assert str(inspect.signature(data.text.LengthFilter)) == (
        "(min_chars: int | None = 1, max_chars: int | None = None, "
        "input_key: str = 'text', **_settings)"
    )


def test_a_signature_shows_no_secret_and_no_long_default(group):
    class Asks(group):
        def __init__(self, model, api_key="sk-123", words="w" * 99, **kwargs):
            super().__init__(**kwargs)

        def forward(self, data):
            return data

    text = str(inspect.signature(Asks))
    assert "sk-123" not in text
    assert "words: Any = ...," in text
    assert text.startswith("(model: Any, api_key: Any = ")


def test_a_group_lists_its_operators_with_their_options(group, step):
    class Mark(group):
        def __init__(self, suffix, key="text", *, api_key="sk-1", **kwargs):
            super().__init__(**kwargs)

        def forward(self, data):
            return data

    assert repr(group) == (
        "<group data.construction, 2 operators>\n"
        "  construction.Mark(suffix, key='text', *, api_key='(hidden)')\n"
        "  construction.step(*, input_key='text', output_key=None)"
    )
    assert {"Mark", "step"} <= set(dir(group))
    assert repr(Mark) == (
        "<operator data.construction.Mark(suffix, key='text', *, api_key='(hidden)')>"
    )


def test_a_group_of_the_library_lists_its_operators():
    assert {"Chunk", "Normalize"} <= set(dir(data.text))
    assert "text.Chunk(max_chars=1000" in repr(data.text)


def test_an_async_operator_may_run_in_any_mode(registry):
    @registry("data.construction")
    async def waits(data: dict):
        return data

    for mode in ("async", "thread", "process", "single"):
        assert settings_of(waits.operator(_concurrency_mode=mode)).concurrency_mode == mode


PRECEDENCE = list(itertools.product([None, "single"], [None, "thread"]))


@pytest.mark.parametrize(("instance", "registration"), PRECEDENCE)
def test_an_instance_overrides_the_registration_which_overrides_the_default(
    registry, instance, registration
):
    @registry("data.construction", _concurrency_mode=registration)
    def step(data: dict):
        return data

    chosen = settings_of(step.operator(_concurrency_mode=instance)).concurrency_mode
    assert chosen == (instance or registration or "process")


def test_settings_of_instance_and_registration_are_joined_one_by_one(step):
    resolved = settings_of(step(_concurrency_mode="single"))

    assert (resolved.concurrency_mode, resolved.max_workers) == ("single", 7)


def test_a_class_may_pass_settings_up_from_its_init(group):
    class Step(group):
        _concurrency_mode = "single"

        def __init__(self, suffix="!", **kwargs):
            super().__init__(_concurrency_mode="thread", **kwargs)
            self.suffix = suffix

        def forward(self, data):
            return data

    assert settings_of(Step()).concurrency_mode == "thread"
    assert settings_of(Step(_concurrency_mode="process")).concurrency_mode == "process"
    assert settings_of(Step(_max_workers=3)).max_workers == 3


def test_a_class_may_name_a_setting_in_its_init(group):
    class Step(group):
        def __init__(self, _max_workers=5):
            super().__init__(_max_workers=_max_workers)

        def forward(self, data):
            return data

    assert settings_of(Step()).max_workers == 5
    assert settings_of(Step(_max_workers=9)).max_workers == 9


def test_an_init_without_kwargs_that_never_calls_its_base_accepts_settings(group):
    class Step(group):
        def __init__(self, suffix="!"):
            self.suffix = suffix

        def forward(self, data):
            data["text"] += self.suffix
            return data

    operator = Step(suffix="?", _concurrency_mode="single", _save_data=False)

    assert settings_of(operator).concurrency_mode == "single"
    assert operator([{"text": "a"}]) == [{"text": "a?"}]


def test_an_init_may_pass_up_the_method_that_its_class_defines(group):
    class Unique(group):
        def __init__(self, key="text", **kwargs):
            super().__init__(rewrite_func="forward_batch_input", **kwargs)
            self.key = key

        def forward_batch_input(self, data):
            return list({record[self.key]: record for record in data}.values())

    assert Unique()([{"text": "a"}, {"text": "a"}]) == [{"text": "a"}]
    assert settings_of(Unique(_save_data=False)).save_data is False


_REWRITES = r"'rewrite_func'.*defines forward; .*out"


@each(
    "case",
    [
        ({"colour": "red"}, "'colour'"),
        *(({"rewrite_func": way}, _REWRITES) for way in ("forward_batch_input", "backward", True)),
    ],
)
def test_an_init_that_passes_invalid_options_up_is_refused(group, case):
    passed, said = case

    class Step(group):
        def __init__(self):
            super().__init__(**passed)

        def forward(self, data):
            return data

    with pytest.raises(OperatorOptionError, match=rf"construction\.Step.*{said}"):
        Step()


def test_an_init_may_pass_up_options_of_forward_which_are_part_of_the_digest(group):
    factor = 2

    class Step(group):
        def __init__(self, warmth=1):
            super().__init__(temperature=warmth * factor)

        def forward(self, data, temperature=0):
            return {"temperature": temperature}

    assert Step(_concurrency_mode="single")({}) == [{"temperature": 2}]
    assert Step(warmth=4, _concurrency_mode="single")({}) == [{"temperature": 8}]
    before = Step().__dataops__.options_digest
    factor = 3
    assert Step().__dataops__.options_digest != before


def test_an_option_of_init_that_is_passed_up_reaches_forward(group):
    class Step(group):
        def __init__(self, temperature=0.7, **kwargs):
            super().__init__(temperature=temperature, **kwargs)

        def forward(self, data, **sent):
            return {"sent": sent}

    single = {"_concurrency_mode": "single"}
    assert Step(**single)({}) == [{"sent": {"temperature": 0.7}}]
    assert Step(temperature=0.1, top_p=1, **single)({}) == [
        {"sent": {"temperature": 0.1, "top_p": 1}}
    ]


@pytest.mark.parametrize("as_class", [True, False])
def test_a_forward_that_takes_any_option_is_given_them_as_a_function_is(registry, group, as_class):
    class Ask(group):
        def __init__(self, prompt="p", **kwargs):
            super().__init__(_concurrency_mode="single", **kwargs)

        def forward(self, data, **sent):
            return {"sent": sent}

    @registry("data.construction", _concurrency_mode="single")
    def ask(data: dict, prompt="p", **sent):
        return {"sent": sent}

    operator = (Ask if as_class else ask.operator)(temperature=0.7)

    assert operator({}) == [{"sent": {"temperature": 0.7}}]
    assert operator.__dataops__.options == {"prompt": "p", "temperature": 0.7}
    warmer = reconfigured(operator, {"temperature": 0.9}, ExecutionSettings())
    assert warmer({}) == [{"sent": {"temperature": 0.9}}]
    assert warmer.__dataops__.options_digest != operator.__dataops__.options_digest


def test_an_init_may_use_an_option_before_forward_is_given_it(group):
    class Ask(group):
        def __init__(self, **kwargs):
            self.retries = kwargs.pop("max_retries", 3)
            super().__init__(**kwargs)

        def forward(self, data, **sent):
            return {"retries": self.retries, "sent": sent}

    operator = Ask(max_retries=5, temperature=0.7, _concurrency_mode="single")
    assert operator({}) == [{"retries": 5, "sent": {"temperature": 0.7}}]


def test_an_init_without_kwargs_leaves_further_options_to_forward(group):
    class Ask(group):
        def __init__(self, prompt="p"):
            self.prompt = prompt

        def forward(self, data, **sent):
            return {"prompt": self.prompt, "sent": sent}

    operator = Ask(prompt="q", temperature=0.7, _concurrency_mode="single")
    assert operator({}) == [{"prompt": "q", "sent": {"temperature": 0.7}}]


def test_a_misspelt_setting_is_refused_even_if_forward_takes_any_option(group):
    class Ask(group):
        def forward(self, data, **sent):
            return data

    with pytest.raises(OperatorOptionError, match="did you mean '_max_workers'"):
        Ask(_max_worker=3)


def test_further_parameters_of_forward_are_options(group):
    class Step(group):
        def __init__(self, prefix="", **kwargs):
            super().__init__(**kwargs)
            self.prefix = prefix

        def forward(self, data, suffix="."):
            return {"text": self.prefix + data["text"] + suffix}

    step = Step(prefix="<", suffix=">", _concurrency_mode="single")
    assert step({"text": "a"}) == [{"text": "<a>"}]
    assert step.forward({"text": "a"}) == {"text": "<a."}
    assert Step(_concurrency_mode="single")({"text": "a"}) == [{"text": "a."}]
    with pytest.raises(OperatorOptionError, match="did you mean 'suffix'"):
        Step(suffx=">")


def test_options_travel_through_inherited_inits(group):
    class Parent(group):
        def __init__(self, key="text", **kwargs):
            super().__init__(**kwargs)
            self.key = key

        def forward(self, data):
            return {self.key: self.mark}

    class Child(Parent):
        def __init__(self, mark, **kwargs):
            super().__init__(**kwargs)
            self.mark = mark

    child = Child(mark="!", key="body", _concurrency_mode="single")
    assert child({}) == [{"body": "!"}]
    assert settings_of(child).concurrency_mode == "single"


def test_set_output_returns_the_operator_itself(step):
    operator = step()

    assert operator.set_output("somewhere") is operator
    assert operator.__dataops__.output == Path("somewhere")


def test_an_operator_shows_its_name_and_the_options_that_differ_from_the_defaults(step):
    assert repr(step(output_key="out")) == "data.construction.step(output_key='out')"
    assert repr(step()) == "data.construction.step()"


def test_a_reconfigured_operator_is_a_new_one(step):
    before = step(output_key="a", _max_workers=2).set_output("out")

    after = reconfigured(before, {"output_key": "b"}, ExecutionSettings(max_workers=9))

    assert dict(after.__dataops__.options) == {"input_key": "text", "output_key": "b"}
    assert settings_of(after).max_workers == 9
    assert after.__dataops__.output == Path("out")
    assert (before.__dataops__.options["output_key"], settings_of(before).max_workers) == ("a", 2)


@data_register("data.functions", _concurrency_mode="single")
def shout(data: dict, input_key="text", mark="!"):
    """Add a mark."""
    data[input_key] += mark
    return data


def test_called_with_a_record_it_is_the_plain_function():
    assert shout({"text": "a"}) == {"text": "a!"}
    assert shout({"body": "a"}, "body", mark="?") == {"body": "a?"}
    assert shout(data={"text": "a"}) == {"text": "a!"}


def test_a_call_with_only_options_or_nothing_constructs_the_operator():
    assert isinstance(shout(), Operator)
    operator = shout(mark="?", _max_workers=3)

    assert isinstance(operator, Operator)
    assert operator([{"text": "a"}]) == [{"text": "a?"}]


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


_group: Any = data_register.new_group("positional")


class Named(_group):
    """Join names."""

    def __init__(self, *names: str, sep: str = "-", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.names, self.sep = names, sep

    def forward(self, row: dict) -> Any:  # type: ignore[type-arg]
        return {**row, "name": self.sep.join(self.names)}


class Led(_group):
    def __init__(self, first: str = "x", *others: str, sep: str = "-", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.text = sep.join((first, *others))

    def forward(self, row: dict) -> Any:  # type: ignore[type-arg]
        return {**row, "name": self.text}


class PassedOn(Led):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


class OwnRest(Led):
    """Takes the rest itself, although its base has positional options."""

    def __init__(self, *words: str, **kwargs: Any) -> None:
        super().__init__("of", *sorted(words), **kwargs)
        self.words = words


class Replacing(Led):
    def __init__(self, *words: str, **kwargs: Any) -> None:
        super().__init__(first="!".join(words), **kwargs)


class ByPosition(_group):
    def __init__(self, first: str, /, second: str = "b", *, third: str = "c", **kw: Any) -> None:
        super().__init__(**kw)
        self.text = first + second + third

    def forward(self, row: dict) -> Any:  # type: ignore[type-arg]
        return {**row, "name": self.text}


def _name(operator: Any) -> str:
    (row,) = operator([{"n": 1}])
    return str(row["name"])


@pytest.mark.slow
@each(
    "case",
    [
        (lambda: Named("a", "b", sep="+"), "a+b"),
        (lambda: Named(names=("a", "b")), "a-b"),
        (lambda: Named(names=["a"]), "a"),
        (lambda: Named(sep="+"), ""),
        (Led, "x"),
        (lambda: Led("a"), "a"),
        (lambda: Led("a", "b", "c"), "a-b-c"),
        (lambda: Led(first="a"), "a"),
        (lambda: Led(others=["b"]), "x-b"),
        (lambda: PassedOn("a", "b", sep="+"), "a+b"),
        (lambda: PassedOn(first="a"), "a"),
        (lambda: Replacing("a", "b"), "a!b"),
        (lambda: ByPosition("a"), "abc"),
        (lambda: ByPosition("a", "x", third="z"), "axz"),
        (lambda: ByPosition(first="a", second="y"), "ayc"),
    ],
)
def test_options_are_given_by_position_or_by_name(root: Path, case: Any) -> None:
    make, wanted = case
    assert _name(make()) == wanted


@each(
    "case",
    [
        (lambda: Named(names="ab"), "must be a list"),
        (lambda: Named("a", names=["b"]), "given twice"),
        (lambda: Led("a", "b", first="c"), "given twice"),
        (ByPosition, "is required"),
        (lambda: ByPosition("a", "b", "c"), "by position"),
        (lambda: Named("a", name="b"), "did you mean 'names'"),
    ],
)
def test_what_cannot_be_given_is_refused_by_name(case: Any) -> None:
    make, reason = case
    with pytest.raises(OperatorOptionError, match=reason):
        make()


@pytest.mark.slow
def test_copies_pickles_texts_and_digests_agree(root: Path) -> None:
    operator = Named("a", "b", sep="+")
    again = eval(repr(operator), {"data": data})  # noqa: S307 - our own text
    changed = reconfigured(operator, {"sep": "/"}, ExecutionSettings())
    sent = receive(ship(operator))
    assert [_name(one) for one in (again, copy.copy(operator), sent)] == ["a+b"] * 3
    assert _name(changed) == "a/b"
    assert _name(reconfigured(operator, {"names": ["c"]}, ExecutionSettings())) == "c"
    digests = {one.__dataops__.options_digest for one in (operator, again, sent)}
    assert len(digests) == 1
    others = (Named("a", "b"), Named("b", "a", sep="+"), Named(sep="+"), changed)
    assert all(one.__dataops__.options_digest not in digests for one in others)


def test_no_further_argument_counts_for_no_fingerprint() -> None:
    """An operator that never had one keeps its own."""
    invocation = Named(sep="+").__dataops__
    without = replace(invocation, options={"sep": "+"})
    assert invocation.options == {"names": (), "sep": "+"}
    assert invocation.options_digest == without.options_digest


def test_help_shows_the_parameter_as_it_is_written() -> None:
    text = str(inspect.signature(Named))
    assert text.startswith("(*names: str, sep: str = '-', **_settings)")
    assert "Named(*names, sep='-')" in repr(Named)
    assert "ByPosition(first, second='b', *, third='c')" in repr(ByPosition)


def test_an_operator_in_worker_processes_has_them(root: Path) -> None:
    with pipeline("named") as ppl:
        ppl.joined = Named("a", "b", _concurrency_mode="process", _max_workers=1)
    with config.temporary(data_process_path=root):
        assert ppl([{"n": 1}]) == [{"n": 1, "name": "a-b"}]


@each(
    "case",
    [
        ("def op(row, *names, sep='-'): return row", r"'\*names' can never be given"),
        ("def op(row, key, /, sep='-'): return row", "'key' can never be given"),
        ("class op:\n def forward(self, row, *names): ...", r"'\*names' can never be given"),
    ],
)
def test_an_operator_whose_parameter_can_never_be_given_is_refused(case: Any) -> None:
    text, reason = case
    found: dict[str, Any] = {}
    exec(text, found)  # noqa: S102 - the function of this test
    with pytest.raises(OperatorDefinitionError, match=reason):
        OperatorRegistry(print)("data.fine")(found["op"])


def test_a_wrapper_that_passes_on_all_arguments_is_a_function_operator(root: Path) -> None:
    @data_register("data.positional", _concurrency_mode="single")
    def wrapped(row: dict, *args: Any, **kwargs: Any) -> Any:  # type: ignore[type-arg]
        return {**row, "given": [*args, *kwargs]}

    assert wrapped(a=1)([{"n": 1}]) == [{"n": 1, "given": ["a"]}]
