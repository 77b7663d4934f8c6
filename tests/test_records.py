"""Tests of dagster_dataops.records."""

import datetime
import enum
import json
import math
import uuid
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.errors import UnencodableError
from dagster_dataops.records import (
    check_integers,
    decode,
    encode,
    encode_anything,
    parse,
    text_of,
)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)
RECORDS = st.dictionaries(st.text(), VALUES, max_size=5)


@dataclass
class Point:
    x: int


class Colour(enum.Enum):
    RED = "red"


class Unlimited(enum.Enum):
    MAXIMUM = math.inf


class Pair(NamedTuple):
    left: int
    right: int


@given(RECORDS)
def test_a_record_survives_the_round_trip_with_its_key_order(record):
    again = decode(encode(record))

    assert again == record
    assert list(again) == list(record)


@given(RECORDS)
def test_a_record_is_one_line_that_any_json_reader_understands(record):
    line = encode(record)

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == record


def test_lines_are_compact_utf8():
    assert encode({"é": [1, 2], "b": {"c": None}}) == '{"é":[1,2],"b":{"c":null}}\n'.encode()


def test_tuples_uuids_and_enum_members_become_json_values():
    identifier = uuid.UUID(int=1)

    line = encode({"tuple": (1, 2), "uuid": identifier, "colour": Colour.RED})

    assert decode(line) == {"tuple": [1, 2], "uuid": str(identifier), "colour": "red"}


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        b"bytes",
        datetime.date(2024, 1, 1),
        datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        datetime.time(1, 2),
        Point(1),
        2**64,
        -(2**63) - 1,
        math.nan,
        math.inf,
        -math.inf,
        "\ud800",
        SimpleNamespace(),
        np.float32(1.5),
        np.float64(1.5),
        np.arange(2),
        Pair(1, 2),
        Unlimited.MAXIMUM,
    ],
    ids=lambda value: f"{type(value).__name__} {value!r}"[:40],
)
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: {"deep": [None, v]}], ids=["flat", "deep"])
def test_values_that_json_cannot_hold_are_refused_with_their_path(value, wrap):
    with pytest.raises(UnencodableError) as caught:
        encode({"good": 1, "bad": wrap(value)})

    expected = "key 'bad'" if wrap(value) is value else "key 'bad'.deep[1]"
    assert caught.value.path == expected
    assert str(caught.value)


UNFIT = [
    ({"tags": {"a"}}, r"holds a set, .* convert it to text or a list"),
    *(({key: 1}, "keys must be strings") for key in (1, None, (1, 2), 1.5)),
    ({"\udc80": 1}, "lone surrogate"),
]


@pytest.mark.parametrize(("record", "reason"), UNFIT)
def test_a_record_that_json_cannot_hold_is_refused_with_a_remedy(record, reason):
    with pytest.raises(UnencodableError, match=reason):
        encode(record)


def test_a_none_beside_numbers_is_not_a_nan():
    assert encode({"a": None, "b": [1.5, None]}) == b'{"a":null,"b":[1.5,null]}\n'


def test_a_record_that_contains_itself_is_refused():
    record: dict = {}
    record["self"] = record

    with pytest.raises(UnencodableError, match="deeper than"):
        encode(record)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[1]", "a JSON list, not an object"),
        (b'"text"', "a JSON str, not an object"),
        (b"null", "a JSON NoneType, not an object"),
        (b"{", "not JSON"),
        (b"", "not JSON"),
        (b'{"a": NaN}', "not JSON"),
        (b'{"a": "\xff"}', "not JSON"),
        (b"{}{}", "not JSON"),
    ],
)
def test_a_line_that_is_not_an_object_is_refused_with_its_type(line, reason):
    with pytest.raises(ValueError, match=reason):
        decode(line)


def test_white_space_around_an_object_is_ignored():
    assert decode(b' {"a": 1} \r') == {"a": 1}


class Hostile:
    """An object whose methods all fail."""

    def __init__(self, error):
        self.error = error

    def __repr__(self):
        raise self.error

    __str__ = __repr__


class HostileDict(dict):
    def items(self):
        raise RuntimeError


ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates included
KEYS = ANY_TEXT | st.integers() | st.none() | st.floats() | st.binary() | st.tuples(st.integers())
ODD = (
    st.integers()
    | st.integers(min_value=10**4999, max_value=10**5000)  # too many digits to be shown
    | st.floats()
    | ANY_TEXT
    | st.binary()
    | st.sets(st.integers())
    | st.dates()
    | st.complex_numbers()
    | st.sampled_from([Point(1), Pair(1, 2), Colour.RED, Unlimited.MAXIMUM, np.float64("nan")])
    | st.builds(HostileDict, st.just({"a": 1}))
    | st.sampled_from([ValueError(), SystemExit(), RecursionError()]).map(Hostile)
)
ANYTHING = st.recursive(
    SCALARS | ODD,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner),
    max_leaves=12,
)


@given(ANYTHING)
def test_any_value_becomes_one_line_of_json(value):
    line = encode_anything(value)

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    decode(b'{"value":' + line + b"}")


@given(RECORDS)
def test_values_that_json_can_hold_are_encoded_unchanged(record):
    assert encode_anything(record) == encode(record)


@pytest.mark.slow
@given(ANYTHING, st.integers(0, 300))
def test_cycles_and_deep_values_become_json(value, levels):
    inner: list[Any] = []
    outer = {"value": value, "inner": inner}
    for level in range(levels):
        outer = {"level": level, "outer": outer} if level % 2 else [outer]
    inner.append(outer)

    decode(b'{"value":' + encode_anything(outer) + b"}")


def test_values_of_many_levels_are_cut_off():
    deep: dict[str, Any] = {"n": 1}
    for _ in range(100_000):
        deep = {"x": deep}

    text = encode_anything(deep)

    assert text.startswith(b'{"x":{"x":')
    assert b'"..."' in text


def test_a_value_that_holds_itself_twice_at_each_level_is_cut_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dagster_dataops.records._SHOWN_PARTS", 10_000)
    value: list[Any] = [float("nan")]
    for _ in range(99):
        value = [value, value]

    shown = encode_anything(value)
    decode(b'{"value":' + shown + b"}")
    assert b"..." in shown
    assert len(shown) < 1_000_000


def test_odd_parts_are_shown_and_the_others_kept():
    value = {"n": 5, "nan": math.nan, "text": "a\ud800", (1, 2): {3}, "big": 2**70, "raw": b"x"}

    assert decode(encode_anything(value)) == {
        "n": 5,
        "nan": "nan",
        "text": "a\\ud800",
        "(1, 2)": "{3}",
        "big": str(2**70),
        "raw": "b'x'",
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ValueError("a\ud800"), "a\\ud800"),
        (Hostile(ValueError()), "(the text of this Hostile cannot be shown)"),
    ],
)
def test_the_text_of_anything_can_be_written(value, text):
    assert text_of(value) == text


def test_values_of_numpy_say_how_they_become_values_of_json():
    numpy = pytest.importorskip("numpy")
    for value, remedy in ((numpy.float32(1), "item"), (numpy.ones(2), "tolist")):
        with pytest.raises(UnencodableError, match=rf"convert it by \.{remedy}\(\)"):
            encode({"a": value})


@given(st.integers() | st.integers(2**63 - 9, 2**64 + 9) | st.integers(-(2**63) - 9, -(2**63) + 9))
def test_an_integer_is_read_exactly_or_refused(number):
    text = json.dumps({"a": {"b": ["x", number]}})

    if -(2**63) <= number < 2**64:
        assert parse(text) == parse(text.encode()) == {"a": {"b": ["x", number]}}
    else:
        with pytest.raises(ValueError, match=f"holds {str(number)[:40]}.*beyond 64 bits"):
            parse(text)
        with pytest.raises(ValueError, match="beyond 64 bits"):
            decode(text.encode())


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 10**30))
def test_digits_in_texts_and_floats_are_no_long_integers(text, number, digits):
    record = {"text": text + f'"\\{digits}', str(digits): number, "point": f"{digits}.{digits}"}
    line = json.dumps(record)[:-1] + f', "exact": 0.{digits:020}, "power": 1e00000000000000000001}}'

    assert decode(line.encode())["text"] == record["text"]


@given(st.text(), st.integers(20, 40), st.text())
def test_no_long_integer_in_lines_is_overlooked(before, count, after):
    line = json.dumps({"a": before, "b": after})
    long = f'{{"b":-{"7" * count}}}'

    check_integers(line.encode())
    for lines in ([line, long], [long, line], [line, long, line]):
        with pytest.raises(ValueError, match="beyond 64 bits"):
            check_integers("\n".join(lines).encode())
