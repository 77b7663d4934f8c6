"""Tests of selectors: grammar, reading, changing, generated code."""

import pickle
from collections import OrderedDict, defaultdict
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import Selector
from dagster_dataops.errors import MissingColumnError, SelectedElementError, SelectorSyntaxError
from dagster_dataops.foundation.selectors.grammar import EVERY, parse, path_text
from dagster_dataops.foundation.selectors.selector import is_selector
from tests.fuzzing import selectors

ITEM = {"foo": [{"x": 1, "y": 2}, {"x": 3, "y": 4, "z": 5}], "bar": 6}


class Point(NamedTuple):
    x: int
    y: int


def tenfold(value):
    return value * 10


def test_a_single_element_is_read_as_it_is_and_several_as_a_list():
    assert Selector("foo[1].y").get(ITEM) == 4
    assert Selector("foo[1].y,bar").get(ITEM) == [4, 6]
    assert Selector("foo[*].x").get(ITEM) == [1, 3]
    assert Selector("bar").values(ITEM) == [6]


def test_only_containers_along_the_path_are_copied():
    changed = Selector("foo[1].y,bar").map(tenfold, ITEM)

    assert changed == {"foo": [{"x": 1, "y": 2}, {"x": 3, "y": 40, "z": 5}], "bar": 60}
    assert list(changed) == list(ITEM)
    assert changed["foo"][0] is ITEM["foo"][0]
    assert ITEM["foo"][1]["y"] == 4


class Counted(dict):
    copies = 0

    def __copy__(self):
        type(self).copies += 1
        return Counted(self)


@pytest.mark.parametrize("text", ["a.x,a.y[0],a.y[1]", "a.y[*],a.x"])
def test_each_container_is_copied_once(text):
    Counted.copies = 0
    item = {"a": Counted(x=1, y=[2, 3])}

    assert Selector(text).map(tenfold, item) == {"a": {"x": 10, "y": [20, 30]}}
    assert Counted.copies == 1


@pytest.mark.parametrize(
    ("text", "item", "changed"),
    [
        ("[3]", (1, 2, 3, 4), (1, 2, 3, 40)),
        ("[0].k,[1]", ({"k": 1}, 5), ({"k": 10}, 50)),
        ("x", {"x": Point(1, 2)}, None),
        ("[1]", Point(1, 2), Point(1, 20)),
        ("[*]", Point(1, 2), Point(10, 20)),
        ("a[*][0]", {"a": (Point(1, 2), [3])}, {"a": (Point(10, 2), [30])}),
        ("[0],[0]", (1, 2), (100, 2)),
        ("a", OrderedDict(a=1), OrderedDict(a=10)),
    ],
)
def test_containers_keep_their_types(text, item, changed):
    changed = {"x": (1, 2) * 10} if changed is None else changed
    found = Selector(text).map(tenfold, item)

    assert found == changed
    assert type(found) is type(changed)
    inner = found.get("a") if isinstance(found, dict) else None
    assert not isinstance(inner, tuple) or isinstance(inner[0], Point)


def test_overlapping_paths_are_processed_in_order():
    assert Selector("a,a").map(tenfold, {"a": 1}) == {"a": 100}
    assert Selector("a[*],a[0]").map(tenfold, {"a": [1, 2]}) == {"a": [100, 20]}
    assert Selector("a.b,a").map(lambda v: {"was": v}, {"a": {"b": 1}}) == {
        "a": {"was": {"b": {"was": 1}}}
    }
    with pytest.raises(MissingColumnError, match="'a.b'"):
        Selector("a,a.b").map(lambda v: 0, {"a": {"b": 1}})


def test_return_values_are_never_changed_by_a_later_path():
    shared = {"b": 1}

    assert Selector("a,a.b").map(lambda v: shared if v != 1 else 2, {"a": {"b": 0}}) == {
        "a": {"b": 2}
    }
    assert shared == {"b": 1}


@pytest.mark.parametrize(
    ("text", "item", "path", "hint"),
    [
        ("b", {"a": 1, "c": 2}, "b", "the keys there are a, c"),
        ("[2]", [1, 2], "[2]", "a list of length 2"),
        ("a[0]", {"a": "xyz"}, "a[0]", "a str, which has no elements"),
        ("[*].a[*]", [{"a": [1]}, {"b": 1}], "[1].a[*]", "'[1].a' is missing"),
        ("[*].foo1", [{"foo1": 1}, {}], "[1].foo1", "the keys there are none"),
        ("a[*]", {"a": {"x": 1}}, "a[*]", "the keys there are x"),
        ("a.b.c", {"a": {"x": 1}}, "a.b.c", "'a.b' is missing"),
        ("a", {f"k{n}": n for n in range(30)}, "a", "k19 and 10 more"),
        ("a", None, "a", "a NoneType, which has no elements"),
    ],
)
def test_a_missing_element_is_named_with_the_existing_ones(text, item, path, hint):
    calls = []
    for attempt in (Selector(text).get, lambda item: Selector(text).map(calls.append, item)):
        with pytest.raises(MissingColumnError) as caught:
            attempt(item)
        assert caught.value.path == path
        assert hint in str(caught.value)
    assert calls == []


def test_nothing_is_applied_where_a_later_path_is_missing():
    calls = []
    with pytest.raises(MissingColumnError, match="zz"):
        Selector("a,zz").map(calls.append, {"a": 1})
    assert calls == []


def test_changing_never_makes_up_a_key_of_a_defaultdict():
    item = defaultdict(list)
    with pytest.raises(MissingColumnError):
        Selector("a").map(tenfold, item)
    assert not item


@pytest.mark.parametrize(
    ("text", "path"), [("a[0].b", "a[0].b"), ("a[*].b", "a[1].b"), ("a,a", "a"), ("a", "a")]
)
def test_a_failure_is_chained_and_names_the_element(text, path):
    def fails(value):
        if value == 1:
            return value
        raise ZeroDivisionError("by zero")

    item = {"a": [{"b": 0 if text == "a[0].b" else 1}, {"b": 0}]}
    with pytest.raises(SelectedElementError, match="ZeroDivisionError: by zero") as caught:
        Selector(text).map(fails, item)

    assert caught.value.path == path
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert isinstance(caught.value, RuntimeError)


def test_a_lookup_error_of_the_function_is_not_a_missing_element():
    with pytest.raises(SelectedElementError, match="KeyError"):
        Selector("a").map(lambda v: {}["b"], {"a": 1})


def test_selectors_pickle_compare_and_know_their_columns():
    selector = Selector("meta.lang, texts[*].body,[0].x,meta.id")

    assert pickle.loads(pickle.dumps(selector)) == selector
    assert hash(selector) == hash(Selector("meta.lang,texts[*].body,[0].x,meta.id"))
    assert selector.columns == ("meta", "texts")
    assert selector != Selector("meta")


def test_a_bound_mapper_equals_map():
    assert list(map(Selector("a").mapper(tenfold), [{"a": 1}, {"a": 2}])) == [{"a": 10}, {"a": 20}]


def test_plain_keys_are_no_selectors():
    assert not is_selector("a key")
    assert all(map(is_selector, ["a.b", "a[0]", "a,b"]))


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("a", [("a",)]),
        ("foo[1].y,bar", [("foo", 1, "y"), ("bar",)]),
        (" a ,\tb\n", [("a",), ("b",)]),
        ("[*].a[01][*]", [(EVERY, "a", 1, EVERY)]),
        ("*", [("*",)]),
        ("a]", [("a]",)]),
        ("0", [("0",)]),
        ('"a.b"', [('"a', 'b"')]),
        ("a,a", [("a",), ("a",)]),
        ("é日本", [("é日本",)]),
        ("[18446744073709551615]", [(2**64 - 1,)]),
    ],
)
def test_well_formed_selectors_are_paths(text, paths):
    assert list(parse(text)) == paths


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", 1),
        (" ", 2),
        (",", 1),
        ("a,", 3),
        ("a, ,b", 4),
        (".", 1),
        (".foo", 1),
        ("foo.", 5),
        ("a..b", 3),
        ("foo[", 4),
        ("foo[]", 4),
        ("foo[[0]", 4),
        ("foo.[0]", 5),
        ("[0]foo", 4),
        ("[0].", 5),
        ("fo o", 3),
        ("foo [0]", 4),
        ("a. b", 3),
        ("[-1]", 1),
        ("[a]", 1),
        ("['a']", 1),
        ("[1:2]", 1),
        ("a[1*]", 2),
        ("a[**]", 2),
        ("[٣]", 1),
        ("[18446744073709551616]", 1),
        ("[" + "9" * 10_000 + "]", 1),
    ],
)
def test_malformed_selectors_are_refused_at_the_column_of_the_fault(text, column):
    with pytest.raises(SelectorSyntaxError) as caught:
        parse(text)

    assert caught.value.column == column
    assert str(caught.value).endswith("\n  " + " " * (column - 1) + "^")


_STEPS = st.lists(
    st.from_regex(r"[^.\[,\s]{1,4}", fullmatch=True) | st.integers(0, 2**64 - 1) | st.just(EVERY),
    min_size=1,
    max_size=6,
).map(tuple)


@given(st.lists(_STEPS, min_size=1, max_size=4))
def test_a_selector_reads_as_it_is_written(paths):
    assert list(parse(" , ".join(map(path_text, paths)))) == paths


@pytest.mark.parametrize("text", ["[*]" * 500, ",".join(["a"] * 2000), "a." * 500 + "a"])
def test_huge_selectors_are_evaluated_as_well(text):
    with pytest.raises(MissingColumnError):
        Selector(text).get({"b": 1})


_KEYS = st.sampled_from(["a", "b", "0", "*"])


_ITEMS = st.recursive(
    st.integers(0, 9) | st.text(max_size=2) | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(_KEYS, inner, max_size=3)
    ),
    max_leaves=12,
)


_ANY_STEP = _KEYS.map(lambda key: f".{key}") | st.sampled_from(["[0]", "[1]", "[*]"])


_PATHS = st.lists(_ANY_STEP, min_size=1, max_size=4).map(lambda s: "".join(s).removeprefix("."))


_TEXTS = st.lists(_PATHS, min_size=1, max_size=3).map(",".join) | st.text("a.[]*0, ", max_size=9)


@given(_TEXTS, _ITEMS)
def test_compiled_selectors_agree_with_plain_evaluation(text, item):
    selectors.check_selector(text, item)
