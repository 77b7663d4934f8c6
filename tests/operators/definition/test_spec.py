"""Tests of the specs of operators, and of how they are built."""

import dataclasses
import datetime
import functools
import importlib
import importlib.util
import itertools
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import httpx
import pydantic
import pytest

from dagster_dataops import Operational, config
from dagster_dataops.errors import OperatorDefinitionError, OperatorOptionError
from tests.each import each
from tests.registries import OperatorRegistry

_COUNTER = itertools.count()


@dataclasses.dataclass
class Login:
    api_key: str
    model: str
    password: str = ""


class Pair(NamedTuple):
    api_key: str
    model: str
    password: str = ""


def Settings(key: str) -> pydantic.BaseModel:  # noqa: N802 - a class with an API key
    return pydantic.create_model("Settings", api_key=(Any, ...))(api_key=key)


class Model(Operational):
    def __init__(self, key: str) -> None:
        self.key = key


@pytest.fixture
def _quick_digests(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hash hidden values once: the rounds that make a guess expensive take a fifth of a second."""
    module: Any = importlib.import_module("dagster_dataops.foundation.hashing.guarded_digest")
    monkeypatch.setattr(module, "_ROUNDS", 1)
    module._stretched.cache_clear()
    yield
    module._stretched.cache_clear()


@pytest.fixture
def options(registry: OperatorRegistry, _quick_digests: None) -> Callable[..., str]:
    """Return the digest of options as given to an operator that takes any, by keyword."""

    @registry("data.spec")
    def ask(
        record: dict,
        endpoint: Annotated[str, Operational] = "https://a",
        model: Any = None,
        **more: Any,
    ) -> dict:
        return record

    class Ask(registry.new_group("spec")):
        def __init__(self, endpoint: Annotated[str, Operational] = "", model: Any = None) -> None:
            self.given = endpoint, model

        def forward(self, record: dict) -> dict:
            return record

    def digest_of(cls: bool = False, **given: Any) -> str:
        return (Ask if cls else ask)(**given).__dataops__.options_digest

    return digest_of


@pytest.fixture
def defined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Return ``target`` of a module with that source."""

    def target(source: str) -> Any:
        path = tmp_path / f"given_{next(_COUNTER)}.py"
        path.write_text(textwrap.dedent(source))
        spec = importlib.util.spec_from_file_location("given", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "given", module)
        spec.loader.exec_module(module)
        return module.target

    return target


HOW = {
    "a key": ({"api_key": "a"}, {"api_key": "b"}),
    "several keys": ({"api_keys": ["a"]}, {"api_keys": ["b", "c"]}),
    "a key of another provider": ({"deepseek_api_key": "a"}, {"deepseek_api_key": "b"}),
    "a token that gives access": ({"hf_token": "a"}, {"hf_token": "b"}),
    "a timeout": ({"timeout": 30}, {"timeout": None}),
    "a timeout in seconds": ({"request_timeout_seconds": 3.5}, {"request_timeout_seconds": 4}),
    "tries": ({"max_retries": 3}, {"max_retries": 5}),
    "a key in headers": (
        {"headers": {"Authorization": "a", "x": "1"}},
        {"headers": {"Authorization": "b", "x": "1"}},
    ),
    "a key of a model": ({"model": {"api_key": "a"}}, {"model": {"api_key": "b"}}),
    "a key that is secret by its type": (
        {"api_key": pydantic.SecretStr("a")},
        {"api_key": pydantic.SecretStr("b")},
    ),
    "a key in a dataclass": ({"value": Login("a", "m")}, {"value": Login("b", "m")}),
    "a key in a named tuple": ({"value": Pair("a", "m")}, {"value": Pair("b", "m")}),
    "a key in a pydantic model": ({"value": Settings("a")}, {"value": Settings("b")}),
    "a key in an object in a list": ({"value": [Login("a", "m")]}, {"value": [Login("b", "m")]}),
    "keys in an environment": (
        {"env": {"OPENAI_API_KEY": "a", "HF_TOKEN": "a", "LANG": "C"}},
        {"env": {"OPENAI_API_KEY": "b", "HF_TOKEN": "b", "LANG": "C"}},
    ),
    "a key in a nested configuration": (
        {"value": {"client": [{"kwargs": {"access_token": "a"}}]}},
        {"value": {"client": [{"kwargs": {"access_token": "b"}}]}},
    ),
    "headers as pairs": (
        {"value": [("Authorization", "a"), ("X-Api-Key", "a"), ("x", "1")]},
        {"value": [("Authorization", "b"), ("X-Api-Key", "b"), ("x", "1")]},
    ),
    "several keys in a dict": ({"config": {"api_keys": ["a"]}}, {"config": {"api_keys": ["b"]}}),
    "bytes": ({"api_key": b"a"}, {"api_key": b"b"}),
    "a login of a request": ({"http_auth": ("u", "a")}, {"http_auth": ("u", "b")}),
    "a type that declares itself operational": ({"model": Model("a")}, {"model": Model("b")}),
    "a parameter that is marked": ({"endpoint": "https://a"}, {"endpoint": "https://b"}),
}


@pytest.mark.parametrize(("one", "other"), HOW.values(), ids=HOW)
def test_operational_options_do_not_count(options, one, other):
    assert options(**one) == options(**other)


def test_a_marked_parameter_of_a_class_does_not_count(options):
    assert options(cls=True, endpoint="a") == options(cls=True, endpoint="b")
    assert options(cls=True, model="a") != options(cls=True, model="b")


def _nested(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = [{"k": value}]
    return value


WHAT = {
    **{
        f"{name} is a secret of a result": ({name: "a"}, {name: "b"})
        for name in (
            *("password", "zip_password", "passphrase", "secret", "encryption_key", "signing_key"),
            *("private_key", "hmac_key", "salt", "pepper", "seed", "secret_key", "cipher_key"),
        )
    },
    "a password by its type": (
        {"password": pydantic.SecretStr("a")},
        {"password": pydantic.SecretStr("b")},
    ),
    "a secret of an unknown name": (
        {"login": [pydantic.SecretStr("a")]},
        {"login": [pydantic.SecretStr("b")]},
    ),
    "a password in a dataclass": (
        {"model": Login("", "", "a")},
        {"model": Login("", "", "b")},
    ),
    "a password in a named tuple": ({"model": Pair("", "", "a")}, {"model": Pair("", "", "b")}),
    "a key of an environment": (
        {"env": {"SIGNING_KEY": "a"}},
        {"env": {"SIGNING_KEY": "b"}},
    ),
    "a signature in headers": (
        {"headers": {"X-Signing-Key": "a"}},
        {"headers": {"X-Signing-Key": "b"}},
    ),
    "several passwords": ({"passwords": ["a", "b"]}, {"passwords": ["b", "a"]}),
    "a password in a number": ({"password": 1}, {"password": 2}),
    "bytes of a key": ({"encryption_key": b"a"}, {"encryption_key": b"b"}),
    "a login in a URL": (
        {"url": "https://u:a@h/x"},
        {"url": "https://u:b@h/x"},
    ),
    "a renamed column that is named as a key": (
        {"rename": {"api_key": "a"}},
        {"rename": {"api_key": "b"}},
    ),
    "a value for a column that is named as a key": (
        {"values": {"access_token": "a"}},
        {"values": {"access_token": "b"}},
    ),
    "two columns, one named as a key": (
        {"columns": [("api_key", "a")]},
        {"columns": [("api_key", "b")]},
    ),
    "the order of a dict": ({"f": {"a": 1, "b": 2}}, {"f": {"b": 2, "a": 1}}),
    "a list and a tuple": ({"f": [1, 2]}, {"f": (1, 2)}),
    "another hour of the same name": (
        {"f": datetime.time(2, fold=0)},
        {"f": datetime.time(2, fold=1)},
    ),
    "a value nested deeply": ({"f": _nested(150, 1)}, {"f": _nested(150, 2)}),
    "a token of a text": ({"eos_token": "<a>"}, {"eos_token": "<b>"}),
    "a token": ({"token": "<a>"}, {"token": "<b>"}),
    "the name of a field": ({"license_key": "a"}, {"license_key": "b"}),
    "a yes or no": ({"mask_password": True}, {"mask_password": False}),
    "a placeholder": ({"mask_password": "***"}, {"mask_password": "---"}),
    "how many tokens": ({"max_tokens": 1}, {"max_tokens": 2}),
    "how long a session lasts": ({"session_timeout": 1}, {"session_timeout": 2}),
    "an entry of a table": ({"table": {"password": "a"}}, {"table": {"password": "b"}}),
    "a renamed column": ({"rename": {"tokens": "a"}}, {"rename": {"tokens": "b"}}),
    "where a client leads": (
        {"model": httpx.Client(base_url="https://a")},
        {"model": httpx.Client(base_url="https://b")},
    ),
    "a header that is no key": ({"headers": {"x-lang": "a"}}, {"headers": {"x-lang": "b"}}),
}


@pytest.mark.parametrize(("one", "other"), WHAT.values(), ids=WHAT)
def test_options_that_change_the_result_count(options, one, other):
    assert options(**one) != options(**other)


CLASSES = {
    "a pydantic model": (
        "import pydantic\nclass target(pydantic.BaseModel):\n    name: str\n{}\n",
        "    size: int",
    ),
    "a description in a pydantic model": (
        (
            "import pydantic\nclass target(pydantic.BaseModel):\n"
            "    name: str = pydantic.Field(description='a{}')\n"
        ),
        "b",
    ),
    "a dataclass": (
        "import dataclasses\n@dataclasses.dataclass\nclass target:\n    name: str\n{}\n",
        "    size: int = 0",
    ),
    "an enum": ("import enum\nclass target(enum.Enum):\n    A = 1\n{}\n", "    B = 2"),
    "the value of an enum": ("import enum\nclass target(enum.Enum):\n    A = 1{}\n", "0"),
    "a method": ("class target:\n    def call(self):\n        return 1{}\n", "0"),
    "a typed dictionary": (
        "import typing\nclass target(typing.TypedDict):\n    name: str\n{}\n",
        "    size: int",
    ),
    "a model inside a model": (
        (
            "import pydantic\nclass City(pydantic.BaseModel):\n    name: str\n{}\n"
            "class target(pydantic.BaseModel):\n    cities: list[City]\n"
        ),
        "    size: int",
    ),
    "the default of a field": (
        "import dataclasses\n@dataclasses.dataclass\nclass target:\n    size: int = 1{}\n",
        "0",
    ),
    "a decorator of a function": (
        (
            "import functools\ndef times(factor):\n    def wrap(function):\n"
            "        @functools.wraps(function)\n        def inner(x):\n"
            "            return function(x) * factor\n        return inner\n    return wrap\n"
            "@times(1{})\ndef target(x):\n    return x\n"
        ),
        "0",
    ),
}


@pytest.mark.parametrize(("source", "more"), CLASSES.values(), ids=CLASSES)
def test_a_class_or_function_given_as_an_option_counts_by_its_code(options, defined, source, more):
    before = options(model=defined(source.format("")))
    assert before == options(model=defined(source.format("")))
    assert before != options(model=defined(source.format(more)))


def test_an_operator_given_as_an_option_counts_alike_before_and_after_it_has_run(
    options, registry, tmp_path
):
    @registry("data.judging")
    def looked(record: dict, model: str = "a") -> dict:
        return record

    judge = looked(model="b", _concurrency_mode="single")
    unused = options(model=[judge])
    assert unused != options(model=[looked(model="c", _concurrency_mode="single")])
    with config.temporary(data_process_path=str(tmp_path)):
        judge([{"n": 1}])
    assert options(model=[judge]) == unused


def test_the_class_of_an_object_given_as_an_option_counts(options, defined):
    source = "class Rule:\n    def __call__(self):\n        return 1{}\ntarget = Rule()\n"
    before = options(model=defined(source.format("")))
    assert before == options(model=defined(source.format("")))
    assert before != options(model=defined(source.format("0")))


def test_an_option_without_known_content_is_named(registry):
    @registry("data.unknown")
    def ask(record: dict, texts: Any = None, key: Annotated[Any, Operational] = None) -> dict:
        return record

    generator = (text for text in "ab")
    assert ask(texts=generator).__dataops__.unknown_options == ("'texts' (a builtins.generator)",)
    assert ask(key=generator).__dataops__.unknown_options == ()
    assert ask(texts=["a"]).__dataops__.unknown_options == ()


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


async def _keep(self, sketches):
    yield True


_SAME: Any = lambda self, data: data  # noqa: E731
_SKETCH: Any = lambda self, record: 1  # noqa: E731
_KEEP: Any = lambda self, sketches: []  # noqa: E731
_REFUSED: list[tuple[dict[str, Any], str]] = [  # members of a class, and what the error says
    ({"forward": _SAME, "forward_batch_input": _SAME}, r"Step .*it has both of forward and"),
    ({}, r"Step .*define exactly one"),
    ({"sketch": _SKETCH}, "sketch with keep.*it has only sketch"),
    ({"keep": _KEEP}, "sketch with keep.*it has only keep"),
    (
        {"sketch": _SKETCH, "keep": _KEEP, "forward": _SAME},
        "it has both of forward and sketch",
    ),
    (
        {"sketch": lambda self, record, key: 1, "keep": _KEEP},
        "sketch must take one record and nothing else",
    ),
    ({"sketch": lambda self: 1, "keep": _KEEP}, "its first parameter must take one record"),
    (
        {"sketch": _SKETCH, "keep": lambda self, sketches, key: []},
        "keep must take the sketches, then `scratch`",
    ),
    ({"sketch": _SKETCH, "keep": lambda self: []}, "its first parameter must take .*the sketches"),
    ({"sketch": _SKETCH, "keep": _keep}, "keep cannot be `async def`; sketch can"),
]


@pytest.mark.parametrize("inherited", [False, True], ids=["own", "inherited"])
@each("case", _REFUSED)
def test_a_class_without_the_methods_of_one_kind_is_refused(registry, inherited, case):
    members, said = case
    group = registry.new_group("definitions")
    bases = (type("Mixin", (), members), group) if inherited else (group,)
    own = {} if inherited else members
    with pytest.raises(OperatorDefinitionError, match=said):
        type(group)("Step", bases, {"__qualname__": "Step", **own})


@pytest.mark.parametrize("thing", [3, "text", functools.partial(print), print, None])
def test_an_object_other_than_a_function_or_class_is_refused(registry, thing):
    with pytest.raises(OperatorDefinitionError):
        registry("data.definitions")(thing)


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
    group = registry.new_group("definitions")
    members = {"__qualname__": "Quick", "_concurrency_mode": "quick", "forward": _SAME}
    with pytest.raises(OperatorOptionError, match=r"definitions\.Quick.*_concurrency_mode"):
        type(group)("Quick", (group,), members)


def test_parameters_of_init_and_of_forward_are_options(registry):
    class Step(registry.new_group("definitions")):
        def __init__(self, suffix, input_key="content", **kwargs):
            super().__init__(**kwargs)

        def forward(self, data, output_key="out", **kwargs):
            return data

    class Static(registry.new_group("definitions")):
        @staticmethod
        def forward(data, key="text"):
            return {key: 1}

    options = {option.name: option.required for option in spec_of(Step).options}
    assert options == {"suffix": True, "input_key": False, "output_key": False}
    assert [option.name for option in spec_of(Static).options] == ["key"]
    assert Static(key="body", _concurrency_mode="single")({}) == [{"body": 1}]


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


def test_a_helper_method_of_that_name_is_allowed(registry):
    class Step(registry.new_group("definitions")):
        def forward(self, record):
            return self.keep(record)

        def keep(self, record):
            return record

    assert spec_of(Step).kind.name == "record"


@pytest.mark.parametrize("method", ["forward", "forward_batch", "forward_window", "sketch_batch"])
def test_a_method_named_stream_makes_no_reader_of_an_operator_of_records(registry, method):
    members = {method: lambda self, records: records, "stream": lambda self: None}
    if method == "sketch_batch":
        members["keep"] = lambda self, sketches: sketches
    made = registry("data.definitions")(type("Step", (), members))
    assert made.__dataops_spec__.kind.by_record
