"""Tests of options that a class takes as ``*names`` or by position only."""

import copy
import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import config, data, pipeline
from dagster_dataops.data import data_register
from dagster_dataops.errors import OperatorDefinitionError, OperatorOptionError
from dagster_dataops.operators.definition.operator import reconfigured
from dagster_dataops.operators.options.settings import ExecutionSettings
from dagster_dataops.operators.pickling import receive, ship
from tests.each import each
from tests.registries import OperatorRegistry

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
    assert text.startswith("(*names: str, sep: str = '-', _")
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
    ],
)
def test_a_function_whose_parameter_can_never_be_given_is_refused(case: Any) -> None:
    text, reason = case
    found: dict[str, Any] = {}
    exec(text, found)  # noqa: S102 - the function of this test
    with pytest.raises(OperatorDefinitionError, match=reason):
        OperatorRegistry(print)("data.fine")(found["op"])


def test_a_method_whose_parameter_can_never_be_given_is_refused() -> None:
    registry = OperatorRegistry(print)
    with pytest.raises(OperatorDefinitionError, match=r"'\*names' can never be given"):

        class Refused(registry.new_group("refused")):  # type: ignore[misc]
            def forward(self, row: dict, *names: str) -> Any:  # type: ignore[type-arg]
                return row, names


def test_a_wrapper_that_passes_on_all_arguments_is_a_function_operator(root: Path) -> None:
    @data_register("data.positional", _concurrency_mode="single")
    def wrapped(row: dict, *args: Any, **kwargs: Any) -> Any:  # type: ignore[type-arg]
        return {**row, "given": [*args, *kwargs]}

    assert wrapped(a=1)([{"n": 1}]) == [{"n": 1, "given": ["a"]}]
