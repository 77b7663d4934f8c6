"""Declared columns, and which types can be read as which."""

from typing import Any

import pytest

from dagster_dataops.errors import OperatorDefinitionError, OperatorOptionError
from dagster_dataops.operators.options.declared_columns import accepts_type, column_types, type_text
from dagster_dataops.operators.pickling import receive, ship
from dagster_dataops.pipelines.local_run import run_operator
from tests.registries import OperatorRegistry

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


def test_only_the_names_that_are_read_are_sent_with_an_operator():
    @registry("data.columns", reads=lambda key: {key: int}, writes=lambda key: {f"{key}2": int})
    def sent(record, key="a"):
        return record

    declared = receive(ship(sent(key="b"))).__dataops__.spec.declared
    assert (declared.reads, declared.writes, declared.columns) == (("b",), None, None)
