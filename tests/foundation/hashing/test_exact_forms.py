"""Tests of exact_forms: values whose records can differ have other forms."""

import itertools
import re
import types
import warnings
from collections import OrderedDict, UserDict, defaultdict
from typing import Any, NamedTuple

import pytest

from dagster_dataops.foundation.hashing import exact_forms
from dagster_dataops.foundation.hashing.exact_forms import EntryRules, ExactForms
from dagster_dataops.foundation.hashing.values import RULES, FormBuilder
from tests.each import each


class Words(list):
    """A list of its own class."""


class Open:
    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


class Text(str):
    """A text of its own class."""

    __slots__ = ()


class Pair(NamedTuple):
    one: int
    two: int


def _recursive() -> Any:
    found: list[Any] = []
    found.append(found)
    return found


def _form(value: Any) -> Any:
    return ExactForms().named("value", value)


@each(
    "values",
    [
        ([1, 2], (1, 2), Words([1, 2])),
        ({1, 2}, frozenset({1, 2})),
        (b"a", bytearray(b"a"), memoryview(b"a")),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, OrderedDict(a=1), UserDict(a=1), defaultdict(int, a=1), defaultdict(str, a=1)),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)),
        (Open(a=1, b=2), Open(b=2, a=1)),
        (types.SimpleNamespace(a=1), Open(a=1), {"a": 1}),
        ([{"a": 1, "b": [1]}], [{"a": 1, "b": (1,)}]),
    ],
)
def test_equal_values_whose_records_can_differ_have_other_forms(values: tuple[Any, ...]) -> None:
    for one, other in itertools.combinations(values, 2):
        assert _form(one) != _form(other), (one, other)


@each("value", [1, "a", {"a": 1}, {}, None, 1.5, b"a", Open(a=1), len])
def test_a_form_without_ambiguity_is_that_of_version_0_2(value: Any) -> None:
    forms = ExactForms()
    assert forms.named("value", value) == FormBuilder().form(value)
    assert forms.rules == ""


@each("value", [(1,), {"a": 1, "b": 2}, frozenset(), Open(a=1, b=2), [(1,)], bytearray(b"a")])
def test_another_form_than_that_of_version_0_2_is_marked(value: Any) -> None:
    forms = ExactForms()
    assert forms.named("value", value) != FormBuilder().form(value)
    assert forms.rules == RULES


@each("value", [[], [1, [2]], {"a": [1]}, {1, 2}, set(), Open(a=[1])])
def test_a_form_that_version_0_2_made_of_other_values_too_is_marked(value: Any) -> None:
    """Otherwise a list that this version has stored counts as a tuple of version 0.2."""
    forms = ExactForms()
    assert forms.named("value", value) == FormBuilder().form(value)
    assert forms.rules == RULES


@each(
    "value",
    [
        *(1, "a", [1, [2]], {"a": [1]}, {1, 2}, {}, None, 1.5, b"a", Open(a=1), len),
        *((1,), {"a": 1, "b": 2}, {"b": 2, "a": 1}, frozenset({1}), Open(a=1, b=2), [(1,)]),
        *({"a": ({"b": 1, "c": (2,)},)}, [Open(a=(1,), b={1: 2, 3: 4})], ()),
    ],
)
def test_older_forms_are_those_of_version_0_2(value: Any) -> None:
    forms = ExactForms(older=True)
    assert forms.named("value", value) == FormBuilder().form(value)
    assert not forms.partial


@each(
    "value",
    [
        *(bytearray(b"a"), re.compile(b"a"), Text("a"), Pair(1, 2)),
        *(_recursive(), {"a": [bytearray(b"a")]}, [Open(a=Pair(1, 2))]),
    ],
)
def test_older_forms_tell_what_version_0_2_has_left_out(value: Any) -> None:
    forms = ExactForms(older=True)
    forms.named("value", value)
    assert forms.partial


@each("names", [{"hidden": lambda name, _: name == "password"}])
def test_older_forms_of_secrets_are_of_no_use(names: dict[str, Any]) -> None:
    forms = ExactForms(entries=EntryRules(**names), older=True)
    forms.named("password", "x")
    assert forms.partial


@pytest.mark.parametrize("depth", [29, 30, 31, 100, 101, 3000])
def test_values_count_however_deeply_they_are_nested(depth: int) -> None:
    def nested(value: Any) -> Any:
        for turn in range(depth):
            value = [{"k": value}, (value,), Open(k=value)][turn % 3]
        return value

    assert _form(nested(1)) == _form(nested(1))
    assert _form(nested(1)) != _form(nested(2))


def test_a_graph_of_objects_is_told_from_one_with_other_edges() -> None:
    def pair(second_to_first: bool) -> Open:
        first, second = Open(), Open()
        first.other = second
        second.other = first if second_to_first else second
        return first

    assert _form(pair(True)) == _form(pair(True))
    assert _form(pair(True)) != _form(pair(False))


def test_a_value_of_too_many_parts_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_forms, "_MAX_PARTS", 100)
    forms = ExactForms()
    forms.named("value", [[n] for n in range(200)])
    assert any("more than 100 parts" in one for one in forms.unknown)


def test_the_value_is_as_before() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in (
            lambda: itertools.cycle([1, 2]),
            lambda: iter([1, 2]),
            lambda: map(str, [1, 2]),
        ):
            value = make()
            next(value)
            before = _form(value)
            assert _form(value) == before
    given = itertools.chain([1], [2])
    _form(given)
    assert list(given) == [1, 2]


def test_a_hidden_value_counts_by_a_digest_of_its_own() -> None:
    hidden = EntryRules(hidden=lambda name, _: name == "password")

    def form(value: Any) -> Any:
        return ExactForms(entries=hidden).named("value", value)

    assert form({"password": "a"}) != form({"password": "b"})
    assert form({"password": "a"}) != _form({"password": "a"})
    assert form({"other": "a"}) == _form({"other": "a"})
