"""Tests of dagster_dataops.operators.options.read_columns."""

import pickle

import pytest

from dagster_dataops import data
from dagster_dataops.errors import MissingColumnError
from dagster_dataops.operators.options.read_columns import (
    OptionsOf,
    ReadKey,
    ReadName,
    check_keys,
    columns_needed,
    keys_of,
)
from dagster_dataops.operators.pickling import receive, ship
from tests.each import each

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
