"""Tests of digests of values: forms, exact forms, what counts and what does not."""

import copy
import datetime
import decimal
import enum
import fractions
import functools
import itertools
import json
import math
import os
import re
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
import types
import uuid
import warnings
from collections import OrderedDict, UserDict, defaultdict
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple

import httpx
import numpy as np
import pandas as pd
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.foundation.hashing import exact_forms
from dagster_dataops.foundation.hashing.exact_forms import EntryRules, ExactForms
from dagster_dataops.foundation.hashing.guarded_digest import guarded_digest
from dagster_dataops.foundation.hashing.operational import Operational, is_annotated_operational
from dagster_dataops.foundation.hashing.values import RULES, FormBuilder, digest
from tests.each import each

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


class Word:
    def __init__(self, text):
        self.text = text

    def shout(self):
        return self.text.upper()


@dataclass(frozen=True, slots=True)
class Slotted:
    text: str


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Client(Word):
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class Node:
    def __init__(self):
        self.others = []


DIFFERENT = {
    "integers": [1, 2],
    "kinds of one": [1, 1.0, "1", True, b"1"],
    "nothing": [None, 0, "", False, math.nan, [], {}],
    "floats": [0.1, 0.2, math.nan, math.inf, -math.inf],
    "large integers": [2**70, 2**70 + 1],
    "texts": ["a", "b", "a\udc80", "b\udc80"],
    "lists": [[1, 2], [2, 1], [[1], 2], [[1, 2]]],
    "mappings": [{"a": 1}, {"a": 2}, {"b": 1}, {"a": {"a": 1}}],
    "sets": [{1}, {2}, {1, 2}],
    "dates": [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)],
    "durations": [datetime.timedelta(1), datetime.timedelta(2)],
    "decimals": [decimal.Decimal(1), decimal.Decimal(2)],
    "fractions": [fractions.Fraction(1, 2), fractions.Fraction(1, 3)],
    "uuids": [uuid.UUID(int=1), uuid.UUID(int=2)],
    "ranges": [range(3), range(4), range(0, 3, 2)],
    "paths": [Path("a"), Path("b"), "a"],
    "patterns": [re.compile("a"), re.compile("b"), re.compile("a", re.IGNORECASE), "a"],
    "enum members": [Colour.RED, Colour.BLUE, 1],
    "objects": [Word("a"), Word("b")],
    "slotted objects": [Slotted("a"), Slotted("b")],
    "objects in objects": [Word(Word(Slotted("a"))), Word(Word(Slotted("b")))],
    "classes": [Word, Slotted, Word("a")],
    "partials": [functools.partial(int, base=2), functools.partial(int, base=8), int],
    "bound methods": [Word("a").shout, Word("b").shout],
    "built-in functions": [len, max],
    "modules": [math, re],
    "arrays": [np.arange(3), np.arange(4), np.arange(3.0)],
    "numbers of numpy": [np.float64(1), np.float64(2), np.int64(1), np.float32(1)],
    "tables": [pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})],
}


@pytest.mark.parametrize("values", DIFFERENT.values(), ids=DIFFERENT)
def test_different_values_have_different_digests(values):
    for one, other in itertools.combinations(values, 2):
        assert digest(one) != digest(other), (one, other)


@given(VALUES)
def test_a_copy_has_the_digest_of_the_original(value):
    assert digest(copy.deepcopy(value)) == digest(value)


@given(VALUES, VALUES)
def test_equal_digests_mean_equal_values(one, other):
    assert one == other or digest(one) != digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ((1, 2), [1, 2]),
        ({1, 2}, frozenset({2, 1})),
        (bytearray(b"a"), b"a"),
        (Word([1]), Word([1])),
        (Slotted("a"), Slotted("a")),
        (Path("a"), PurePosixPath("a")),
        (np.arange(3), np.arange(3)),
    ],
)
def test_equal_values_have_equal_digests(one, other):
    assert digest(one) == digest(other)


def test_a_resource_counts_by_its_class_and_its_public_plain_attributes():
    assert digest(Client("a")) != digest(Client("b"))
    assert digest(Client("a")) == digest(Client("a"))
    assert digest(Client([object()])) == digest(Client([object()]))


def test_an_http_client_counts_by_its_address(recwarn):
    one, other = (httpx.Client(base_url=f"https://{host}.example") for host in "ab")
    assert digest(one) != digest(other)
    assert digest(one) == digest(httpx.Client(base_url="https://a.example", timeout=7))


def test_a_lock_counts_by_its_class():
    former = FormBuilder()
    assert former.form(threading.Lock()) == former.form(threading.Lock())
    assert former.unknown == set()


@pytest.mark.parametrize("value", [sqlite3.connect(":memory:"), (n for n in "ab"), Client(len)])
def test_an_object_known_only_by_its_class_is_reported(value):
    former = FormBuilder()
    former.form({"inside": [value]})
    assert len(former.unknown) == 1


def test_a_resource_inside_an_object_does_not_hide_the_rest():
    one, other = Word("a"), Word("b")
    one.lock, other.lock = threading.Lock(), threading.Lock()

    assert digest(one) != digest(other)


def test_values_that_contain_themselves_are_supported():
    loop: list = [1]
    loop.append(loop)

    assert digest(loop) == digest(loop)
    assert digest(loop) != digest([1])


def test_a_dense_graph_of_objects_is_visited_once():
    nodes = [Node() for _ in range(40)]
    for node in nodes:
        node.others = nodes

    began = time.monotonic()
    digest(nodes)

    assert time.monotonic() - began < 5


def test_values_nested_very_deeply_do_not_exhaust_the_stack():
    deep: list = []
    for _ in range(5000):
        deep = [deep]

    assert digest(deep)


PRINT_DIGESTS = textwrap.dedent(
    """
    import datetime, pathlib, re
    from dagster_dataops.foundation.hashing.values import digest

    class Table:
        def __init__(self):
            self.words = {"x", "y", "z", ("t", 1), frozenset({"p", "q"})}
            self.pattern = re.compile("a|b")

    print(digest({
        "set": {str(n) for n in range(50)},
        "nested": frozenset({frozenset({"a", "b"}), frozenset({"c"})}),
        "object": Table(),
        "mapping": {k: 1 for k in {"d", "e", "f"}},
        "date": datetime.date(2024, 1, 1),
        "path": pathlib.Path("a/b"),
        "function": Table.__init__,
    }))
    """
)


def test_digests_are_equal_across_processes_for_all_hash_seeds(run_python):
    assert len({run_python(PRINT_DIGESTS, PYTHONHASHSEED=seed) for seed in "0123"}) == 1


class _Key(tuple):
    __slots__ = ()

    def __iter__(self):
        raise NotImplementedError


def test_a_tuple_that_refuses_to_be_iterated_counts_by_its_elements() -> None:
    assert digest(_Key("ab")) == digest(_Key("ab"))
    assert digest(_Key("ab")) != digest(_Key("ac"))


def test_an_object_whose_attributes_cannot_be_read_counts_by_its_class_and_plain_values() -> None:
    class Unbound:
        def __init__(self, name: str) -> None:
            object.__setattr__(self, "name", name)

        @property
        def __class__(self) -> type:
            raise RuntimeError("outside of a request")

    assert digest(Unbound("a")) == digest(Unbound("a"))
    assert digest(Unbound("a")) != digest(Unbound("b"))


def test_an_object_that_fails_when_a_missing_attribute_is_read_still_counts() -> None:
    class Forwarding:
        def __init__(self, name: str) -> None:
            self.name = name

        def __getattr__(self, name: str) -> object:
            return getattr(self, name)  # without end

    assert digest(Forwarding("a")) == digest(Forwarding("a"))
    assert digest(Forwarding("a")) != digest(Forwarding("b"))


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


@pytest.mark.slow
def test_a_hidden_value_counts_by_a_digest_of_its_own() -> None:
    hidden = EntryRules(hidden=lambda name, _: name == "password")

    def form(value: Any) -> Any:
        return ExactForms(entries=hidden).named("value", value)

    assert form({"password": "a"}) != form({"password": "b"})
    assert form({"password": "a"}) != _form({"password": "a"})
    assert form({"other": "a"}) == _form({"other": "a"})


_FEW = 10  # kinds that cannot be compared


@pytest.fixture(scope="module")
def measured() -> list[dict[str, Any]]:
    """Return the digests of all kinds in two new interpreters with other hash seeds."""
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.foundation.hashing.constant_kinds"],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    return [json.loads(process.communicate()[0]) for process in started]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["code", "options"])
def test_every_change_of_a_value_is_noticed_or_reported(
    measured: list[dict[str, Any]], place: str
) -> None:
    kinds = measured[0][place]
    reported = [name for name, (one, other) in kinds.items() if one[1:] or other[1:]]
    missed = [
        name for name, (one, other) in kinds.items() if one[0] == other[0] and name not in reported
    ]
    assert missed == []
    assert len(reported) < _FEW
    assert len(kinds) > 300


@pytest.mark.slow
@pytest.mark.parametrize("place", ["code", "options", "harmless"])
def test_digests_are_the_same_in_every_process(measured: list[dict[str, Any]], place: str) -> None:
    one, other = (of[place] for of in measured)
    assert [name for name in one if one[name] != other[name]] == []


@pytest.mark.slow
def test_what_only_reports_synchronizes_or_gives_access_does_not_count(
    measured: list[dict[str, Any]],
) -> None:
    kinds = measured[0]["harmless"]
    assert [name for name, (one, other) in kinds.items() if one != other or one[1:]] == []


def test_objects_declared_operational_do_not_count():
    class Model(Operational):
        def __init__(self, key):
            self.key = key

    assert digest(Model("a")) == digest(Model("b"))
    assert digest([pydantic.SecretStr("a")]) == digest([pydantic.SecretStr("b")])


@pytest.mark.parametrize(
    ("annotation", "marked"),
    [
        (Annotated[float, Operational], True),
        (Annotated[float, Operational] | None, True),
        (Operational, True),
        ("Annotated[float, Operational]", True),
        (Annotated[float, "seconds"], False),
        (float | None, False),
        ("float", False),
        (Any, False),
    ],
)
def test_an_annotation_marks_its_parameter(annotation, marked):
    assert is_annotated_operational(annotation) is marked


_GUESSES = 3
_SECONDS = 0.02  # for a guess, on a fast machine


@pytest.mark.slow
def test_equal_values_have_equal_digests_and_other_names_other_ones() -> None:
    assert guarded_digest("password", "'a") == guarded_digest("password", "'a")
    assert guarded_digest("password", "'a") != guarded_digest("password", "'b")
    assert guarded_digest("password", "'a") != guarded_digest("salt", "'a")


def test_the_digest_is_the_same_in_every_version() -> None:
    assert (
        guarded_digest("password", "'a")
        == "824fb33f70220e0d90b4013739b62ca248db067b988a4d6097b20d950c79e144"
    )


@pytest.mark.slow
def test_each_guess_is_expensive_and_a_known_value_is_not() -> None:
    began = time.process_time()
    for number in range(_GUESSES):
        guarded_digest("password", f"'guess {number}")
    assert time.process_time() - began > _GUESSES * _SECONDS
    began = time.process_time()
    for _ in range(1000):
        guarded_digest("password", "'guess 1")
    assert time.process_time() - began < _GUESSES * _SECONDS
