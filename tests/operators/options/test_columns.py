"""Tests of the columns that operators declare: what they read and write."""

import pickle
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import MissingColumnError, OperatorDefinitionError, OperatorOptionError
from dagster_dataops.operators.options.declared_columns import accepts_type, column_types, type_text
from dagster_dataops.operators.options.read_columns import (
    OptionsOf,
    ReadKey,
    ReadName,
    check_keys,
    columns_needed,
    keys_of,
)
from tests.each import each
from tests.nodes import run_operator
from tests.registries import OperatorRegistry
from tests.sent_operators import receive, ship

RECORD = {"a": 1, "n": None, "m": {"x": None, "l": [{"t": 1}], "e": []}, "dot.ted": 1, "w s": 1}


@each(
    "case",
    [
        ("a", True, False),
        ("n", True, True),
        ("b", False, None),
        ("m.x", True, True),
        ("m.y", False, None),
        ("a.x", False, None),
        ("n.x", False, None),
        ("m.l[0].t", True, False),
        ("m.l[1].t", False, None),
        ("m.l[*].t", True, False),
        ("m.l[*].u", False, None),
        ("m.e[*].t", True, True),
        ("dot.ted", True, False),
        ("w s", True, False),
    ],
)
def test_a_key_is_found_by_its_path_or_its_name(case) -> None:
    name, there, null = case
    key = ReadKey(name)
    assert key.is_in(RECORD) is there
    assert null is None or key.is_null(RECORD) is null


def test_names_of_columns_are_no_selectors() -> None:
    assert ReadKey("m.x").is_in(RECORD)
    assert not ReadKey("m.x", plain=True).is_in(RECORD)
    assert [key.name for key in keys_of(["a,b", "c[", "a"])] == ["a", "b", "c["]
    assert [key.name for key in keys_of([ReadName("a,b", plain=True)])] == ["a,b"]


def test_each_key_has_the_column_that_it_begins_with() -> None:
    assert columns_needed(["a", "m.x", "b,c[0]"]) == [
        ("a", "a"),
        ("m.x", "m"),
        ("b,c[0]", "b"),
        ("b,c[0]", "c"),
    ]


def test_a_name_may_be_of_one_input() -> None:
    names = [ReadName("left", input=0), ReadName("right", input=1), "both"]
    assert [[key.name for key in keys_of(names, number)] for number in (0, 1)] == [
        ["left", "both"],
        ["right", "both"],
    ]


def test_options_name_keys_as_texts_lists_and_mappings() -> None:
    reads = OptionsOf(("a", "b", "c", "absent"), plain=True)
    found = reads(a="x", b=["y", "x", 1], c={"z": "new"}, d="other")
    assert [(name, name.plain) for name in found] == [("x", True), ("y", True), ("z", True)]
    assert reads(a=None, b=5, c=True) == []


def test_a_missing_key_is_named_with_those_that_there_are() -> None:
    check_keys(RECORD, keys_of(["a", "m.x"]))
    with pytest.raises(MissingColumnError, match="'b'.* its columns are a, n, m, dot.ted, w s"):
        check_keys(RECORD, keys_of(["a", "b"]))


def test_what_is_read_reaches_other_processes() -> None:
    name = pickle.loads(pickle.dumps(ReadName("a", plain=True, input=1)))
    assert (name, name.plain, name.input) == ("a", True, 1)
    for operator in (data.shape.Select(["m.x"]), data.text.Normalize(input_key="m.x")):
        (here,), (there,) = (
            one.__dataops__.keys_read() for one in (operator, receive(ship(operator)))
        )
        assert (here.name, here.selector) == (there.name, there.selector)


registry = OperatorRegistry(run_operator)


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        (float, float),
        (float, int),
        (Any, str),
        (str, Any),
        (list, list[float]),
        (list[float], list),
        (list[float], list[int]),
        (list[list[float]], list[list[int]]),
        (str | None, str),
        (str | None, None),
        (float | str, int | str),
        (dict[str, float], dict[str, int]),
        (Any, list[int]),
    ],
    ids=str,
)
def test_a_column_can_be_read(wanted, there):
    assert accepts_type(wanted, there)


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        (int, float),
        (int, bool),
        (float, bool),
        (str, int),
        (str, str | None),
        (float, list[float]),
        (list[float], list[str]),
        (list[float], list[list[float]]),
        (list, dict),
        (str | int, list[str]),
    ],
    ids=str,
)
def test_a_column_cannot_be_read(wanted, there):
    assert not accepts_type(wanted, there)


@pytest.mark.parametrize(
    ("declared", "text"),
    [(float, "float"), (list[float], "list[float]"), (Any, "Any"), (str | None, "str | None")],
)
def test_a_type_is_shown_as_one_writes_it(declared, text):
    assert type_text(declared) == text


def test_columns_are_types_names_or_a_function_of_the_options():
    assert column_types("op", "reads", {"a": int}, {}) == {"a": int}
    assert column_types("op", "reads", ["a", "b"], {}) == {"a": Any, "b": Any}
    found = column_types("op", "reads", lambda key, **_: {key: str}, {"key": "k", "other": 1})
    assert found == {"k": str}


@pytest.mark.parametrize(
    "declaration", ["text", 3, {"a": "float"}, {"a": 3}, {1: int}, [1]], ids=str
)
def test_an_invalid_declaration_is_refused_at_registration(declaration):
    def odd(record):
        return record

    with pytest.raises(OperatorDefinitionError, match="odd.*reads"):
        registry("data.columns", reads=declaration)(odd)


def test_all_columns_and_further_ones_exclude_one_another():
    def both(record):
        return record

    with pytest.raises(OperatorDefinitionError, match="both writes.*and columns"):
        registry("data.columns", writes=["a"], columns=["b"])(both)


def test_a_misspelt_declaration_is_refused():
    with pytest.raises(OperatorOptionError, match="did you mean 'reads'"):
        registry("data.columns", read=["a"])


def test_a_class_declares_columns_in_its_class_statement():
    class Declares(registry.new_group("columns"), reads={"a": int}, writes={"b": int}):
        def forward(self, record):
            return {**record, "b": record["a"]}

    declared = Declares().__dataops__.spec.declared
    assert (declared.reads, declared.writes, declared.columns) == ({"a": int}, {"b": int}, None)


def test_the_names_that_are_read_are_sent_and_whether_columns_are_written():
    @registry("data.columns", reads=lambda key: {key: int}, writes=lambda key: {f"{key}2": int})
    def sent(record, key="a"):
        return record

    declared = receive(ship(sent(key="b"))).__dataops__.spec.declared
    assert (declared.reads, declared.writes, declared.columns) == (("b",), (), None)
