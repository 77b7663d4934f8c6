"""Tests of dagster_dataops.foundation.hashing.values."""

import copy
import datetime
import decimal
import enum
import fractions
import functools
import itertools
import math
import re
import sqlite3
import textwrap
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import httpx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.foundation.hashing.values import FormBuilder, digest

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
