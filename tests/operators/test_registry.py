"""Tests of dagster_dataops.operators.registry."""

import builtins
import importlib.util
import sys
import textwrap
from collections.abc import Mapping
from typing import TypedDict

import pytest

from dagster_dataops import Operator
from dagster_dataops.errors import (
    DuplicateOperatorError,
    OperatorDefinitionError,
    OperatorOptionError,
    UnknownOperatorError,
)
from tests.each import each
from tests.registries import OperatorRegistry


def contents(registry: OperatorRegistry) -> dict[str, dict[str, object]]:
    return {
        group: {name: registry.operator(group, name) for name in registry.operators(group)}
        for group in registry.groups()
    }


def define(registry: OperatorRegistry, *, result: str = "first"):
    @registry("data.again")
    def step(data: dict):
        data["result"] = result
        return data

    return step


@pytest.fixture
def module_of(tmp_path, monkeypatch):
    """Run a source file as a module that uses ``registry``."""

    def load(name: str, source: str, registry: OperatorRegistry):
        path = tmp_path / f"{name}.py"
        path.write_text(textwrap.dedent(source))
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        module.registry = registry
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load


SOURCE = """
@registry("data.twice")
def step(data: dict):
    return data
"""


def test_a_new_group_requested_twice_is_the_same_group(registry):
    group = registry.new_group("demo")
    define_class = type(group)(
        "Kept", (group,), {"__qualname__": "Kept", "forward": lambda s, d: d}
    )

    assert registry.new_group("demo") is group
    assert registry.new_group("demo").Kept is define_class


def test_a_missing_group_is_created(registry):
    define(registry)

    assert registry.groups() == ["again"]


def test_groups_and_operators_are_listed_sorted(registry):
    for name in ["b", "a"]:
        registry.new_group(name)
    for name in ["y", "x"]:
        function = type(define)(define.__code__, {}, name)
        function.__qualname__ = name
        registry("data.a")(function)

    assert registry.groups() == ["a", "b"]
    assert registry.operators("a") == ["x", "y"]


def test_registering_again_from_the_same_place_replaces(registry):
    before = define(registry).operator
    after = define(registry, result="second").operator

    assert registry.operator("again", "step") is after
    assert registry.operator("again", "step") is not before


def test_registering_a_class_again_from_the_same_place_replaces(registry):
    def define_class():
        class Step(registry.new_group("again")):
            def forward(self, data):
                return data

        return Step

    first, second = define_class(), define_class()

    assert first is not second
    assert registry.operator("again", "Step") is second


def test_another_place_is_refused_and_both_are_named(registry, module_of):
    module_of("first_place", SOURCE, registry)

    with pytest.raises(DuplicateOperatorError) as caught:
        module_of("second_place", SOURCE, registry)

    assert caught.value.operator == "twice.step"
    assert "first_place.step" in caught.value.registered
    assert "second_place.step" in caught.value.refused
    assert "first_place.py" in str(caught.value)
    assert "second_place.py" in str(caught.value)
    assert registry.operator("twice", "step").__dataops_spec__.place == "first_place.step"


def test_one_file_loaded_under_two_names_is_one_place(registry, module_of, tmp_path, monkeypatch):
    module_of("once", SOURCE, registry)
    spec = importlib.util.spec_from_file_location("another_name", tmp_path / "once.py")
    module = importlib.util.module_from_spec(spec)
    module.registry = registry
    monkeypatch.setitem(sys.modules, "another_name", module)

    spec.loader.exec_module(module)

    assert registry.operator("twice", "step") is module.step.operator


def test_two_functions_of_one_module_are_two_places(registry, module_of):
    source = """
    def make(number):
        if number == 1:
            @registry("data.twice")
            def step(data: dict):
                return data
        else:
            class Holder:
                @registry("data.twice")
                def step(data: dict):
                    return [data]

    make(1)
    make(2)
    """

    with pytest.raises(DuplicateOperatorError):
        module_of("both", source, registry)


def test_one_name_in_two_groups_is_two_operators(registry):
    def step(data):
        return data

    registry("data.one")(step)
    registry("data.two")(step)

    assert registry.operator("one", "step") is not registry.operator("two", "step")


def no_data():
    return None


def keyword_only(*, data):
    return data


async def waits(data: list):
    return data


def other_place(data):
    return data


_DATASET = {"rewrite_func": "forward_batch_input"}
_REFUSED = [  # a path, settings, what is registered, and what the error says
    ("data.kept", {}, lambda data: data, r"<lambda>.*write it as a `def`"),
    ("data.kept", {}, no_data, "first parameter must take one record"),
    ("data.new", {}, keyword_only, "first parameter must take one record"),
    ("data.new", _DATASET, waits, "cannot be `async def`"),
    ("data.kept", {}, other_place, "step"),
    ("data.new", {"_max_workers": -1}, other_place, "'_max_workers'"),
    ("data.new", {"_max_worker": 2}, other_place, "did you mean '_max_workers'"),
    ("data.new", {"rewrite_fun": "forward"}, other_place, "did you mean 'rewrite_func'"),
    ("data.new", {"rewrite_func": "backward"}, other_place, "one of forward, forward_batch, forw"),
    ("data.new", {}, type("Plain", (), {}), "exactly one"),
    *((path, {}, other_place, None) for path in ("new", "data.", "data.new.deep", "data.a-b")),
    *((path, {}, other_place, None) for path in ("data._a", "", "other.demo")),
    (other_place, {}, other_place, r"write @data_register\('data\.<group>'\)"),
]


@each("case", _REFUSED)
def test_a_refused_registration_leaves_the_registry_as_it_was(case):
    path, settings, registered, said = case
    registry = OperatorRegistry(print)

    @registry("data.kept")
    def step(data: dict):
        return data

    other_place.__name__ = "step"
    before = contents(registry)
    errors = (OperatorDefinitionError, OperatorOptionError, DuplicateOperatorError)
    with pytest.raises(errors, match=said):
        registry(path, **settings)(registered)
    group = registry.group("kept")
    wrong = {"__qualname__": "Wrong", "_max_workers": -1, "forward": lambda s, d: d}
    for members in ({"__qualname__": "Neither"}, wrong):
        with pytest.raises(errors):
            type(group)("Refused", (group,), members)
    assert contents(registry) == before


def test_dataset_operators_have_a_separate_decorator(registry):
    @registry.forward_batch_input("data.demo", _save_data=False)
    def backwards(data: list[dict]):
        return data[::-1]

    operator = backwards()
    assert operator.__dataops__.spec.kind.name == "dataset"
    assert operator.__dataops__.resolved.save_data is False
    assert operator([{"n": 1}, {"n": 2}]) == [{"n": 2}, {"n": 1}]


def test_a_function_becomes_an_operator_without_being_registered(registry):
    before = contents(registry)

    def one(record: dict, mark="!"):
        return {"text": record["text"] + mark}

    def one_mapping(record: Mapping[str, str]):
        return dict(record)

    async def waits(record):
        return record

    class Document(TypedDict):
        text: str

    def typed(record: Document):
        return record

    def every(records: list[dict]):
        return records

    def unannotated(records):
        return records

    functions = (one, one_mapping, waits, typed, every, unannotated)
    operators = [registry.of_function(function, "node") for function in functions]
    kinds = [operator.__dataops__.spec.kind.name for operator in operators]
    assert kinds == ["record"] * 4 + ["dataset"] * 2
    assert operators[0].forward({"text": "a"}) == {"text": "a!"}
    assert repr(operators[4]) == f"{__name__}.{every.__qualname__}()"
    assert contents(registry) == before


def test_a_function_that_is_not_registered_is_called_by_its_name_a_lambda_by_its_node(registry):
    def clean(records):
        return records

    names = [
        registry.of_function(function, "node").__dataops__.spec.qualified_name
        for function in (clean, lambda records: records)
    ]
    assert names == ["clean", "node"]


def test_a_function_that_is_not_registered_must_take_data_and_have_defaults(registry):
    with pytest.raises(OperatorDefinitionError, match="its first parameter must take"):
        registry.of_function(lambda: None, "node")
    with pytest.raises(OperatorOptionError, match="'key' is required"):
        registry.of_function(lambda records, key: records, "node")


@pytest.mark.parametrize("name", ["with space", "_private", "größe", "a.b", "", "1st"])
def test_a_group_needs_a_plain_name(registry, name):
    with pytest.raises(OperatorDefinitionError, match="not a plain identifier"):
        registry.new_group(name)


def test_an_operator_of_a_group_that_is_not_imported_yet_is_found(run_python):
    run_python("""
from dagster_dataops import data_register
assert data_register.operator("html", "ToMarkdown").__name__ == "ToMarkdown"
""")


def test_an_operator_of_an_unknown_group_is_an_unknown_operator(registry):
    with pytest.raises(UnknownOperatorError):
        registry.operator("nothing", "step")


def test_an_unknown_operator_names_the_nearest(registry):
    define(registry)

    with pytest.raises(UnknownOperatorError, match=r"Did you mean data\.again\.step"):
        _ = registry.group("again").stepp
    assert not hasattr(registry.group("again"), "stepp")


def test_an_unknown_group_names_the_known_ones(registry):
    registry.new_group("known")

    with pytest.raises(UnknownOperatorError, match=r"data\.elsewhere.*data\.known"):
        registry.group("elsewhere")


def test_a_plain_class_can_be_registered_by_the_decorator(registry):
    @registry("data.plain", _concurrency_mode="single")
    class Shout:
        def __init__(self, mark="!"):
            self.mark = mark

        def forward(self, data):
            data["text"] += self.mark
            return data

    assert registry.group("plain").Shout(mark="?")([{"text": "a"}]) == [{"text": "a?"}]
    assert Shout().__dataops__.resolved.concurrency_mode == "single"


def test_a_class_without_a_group_gets_it_from_the_decorator(registry):
    class Marked(Operator):
        def __init__(self, mark, **kwargs):
            super().__init__(**kwargs)
            self.mark = mark

        def forward(self, data):
            data["text"] += self.mark
            return data

    @registry("data.marked", _concurrency_mode="single", _retries=1)
    class Shout(Marked):
        pass

    class Louder(Shout):
        def forward(self, data):
            return super().forward(super().forward(data))

    assert registry.group("marked").Shout is Shout
    assert registry.operators("marked") == ["Louder", "Shout"]
    assert isinstance(Shout("!"), Marked)
    assert Shout("!")([{"text": "a"}]) == [{"text": "a!"}]
    assert Louder(mark="!")([{"text": "a"}]) == [{"text": "a!!"}]
    resolved = Shout("!", _retries=3).__dataops__.resolved
    assert (resolved.concurrency_mode, resolved.retries) == ("single", 3)
    with pytest.raises(OperatorDefinitionError, match="belongs to no group"):
        Marked("!")


def test_a_class_of_a_group_needs_no_decorator(registry):
    with pytest.raises(OperatorDefinitionError, match="leave the decorator off"):

        @registry("data.plain")
        class Step(registry.new_group("plain")):
            def forward(self, data):
                return data


def test_a_group_itself_cannot_be_constructed(registry):
    with pytest.raises(OperatorDefinitionError, match="it is a group"):
        registry.new_group("plain")()


class WithoutGroup(Operator):
    def forward(self, data):
        return data


def test_an_operator_without_a_group_says_how_to_inherit_from_one():
    inherits = r"class WithoutGroup\(data_register.new_group\('my_group'\)\)"
    message = rf"belongs to no group.*@data_register\('data.my_group'\).*: {inherits}"
    with pytest.raises(OperatorDefinitionError, match=message):
        WithoutGroup()
    with pytest.raises(OperatorDefinitionError, match=r"class MyOperator\("):
        Operator()


@pytest.fixture
def with_library(tmp_path, monkeypatch):
    """A registry with a library whose groups are `theirs` and `broken`."""
    (tmp_path / "library_for_registry.py").write_text(
        "GROUPS = {'theirs': 'theirs_for_registry', 'broken': 'broken_for_registry'}"
    )
    (tmp_path / "broken_for_registry.py").write_text("raise ImportError('loaded')")
    (tmp_path / "theirs_for_registry.py").write_text("registry.new_group('theirs')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(builtins, "registry", None, raising=False)
    made = builtins.registry = OperatorRegistry(None, libraries=["library_for_registry"])
    return made


def test_the_module_of_a_group_is_imported_when_the_group_is_requested(with_library):
    with_library.new_group("mine")

    assert with_library.group("mine")
    assert with_library.groups() == ["broken", "mine", "theirs"]
    assert "theirs_for_registry" not in sys.modules
    assert with_library.group("theirs")
    assert "theirs_for_registry" in sys.modules
    with pytest.raises(ImportError, match="loaded"):
        with_library.group("broken")


def test_the_operators_of_a_library_are_listed_in_a_group_that_exists_already(with_library):
    with_library.new_group("broken")

    assert with_library.group("broken")
    with pytest.raises(ImportError, match="loaded"):
        with_library.operators("broken")
