"""Tests of conditions on records: parsing, printing, values, and errors with their places."""

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.checkpoints.resume.record_condition import (
    FACTS,
    Comparison,
    Joined,
    Literal,
    Name,
    Negation,
    RecordCondition,
    RecordFacts,
    Truth,
)
from dagster_dataops.errors import ConditionSyntaxError
from tests.each import each

_KEYS = st.text(st.characters(exclude_characters="`", exclude_categories=["Cs"]), min_size=1)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
_CONSTANTS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    _TEXTS,
)
_NAMES = st.one_of(
    st.sampled_from(FACTS).map(lambda fact: Name("", (fact,))),
    st.builds(
        Name,
        st.sampled_from(["input", "result"]),
        st.lists(_KEYS, min_size=1, max_size=3).map(tuple),
    ),
)
_LITERALS = st.builds(Literal, st.one_of(_CONSTANTS, st.lists(_CONSTANTS, max_size=3).map(tuple)))
_COMPARISONS = st.one_of(
    st.builds(
        Comparison,
        _NAMES,
        st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "contains"]),
        st.one_of(_LITERALS, _NAMES),
    ),
    st.builds(
        Comparison,
        _NAMES,
        st.sampled_from(["in", "not in"]),
        st.lists(_CONSTANTS, max_size=3).map(tuple).map(Literal),
    ),
    st.builds(Truth, _NAMES),
)


def _combined(inner: Any) -> Any:
    parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Negation, inner), st.builds(Joined, st.sampled_from(["and", "or"]), parts)
    )


_TESTS = st.recursive(_COMPARISONS, _combined, max_leaves=6)
_FACTS = RecordFacts(
    {"n": 3, "text": "a timeout", "meta": {"lang": "de", "tags": ["x", "y"]}, "empty": None},
    [{"score": 0.2, "text": "b"}, {"score": 0.9}],
    ["timeout"],
)
_FAILED = RecordFacts({"n": 1, "error": "mine"}, error={"exception": "KeyError", "message": "'a'"})


@given(_TESTS)
def test_a_printed_condition_is_parsed_to_the_same(test: Any) -> None:
    text = str(RecordCondition(test))
    if len(text) > 4000:
        return
    assert RecordCondition.parse(text).test == test


@given(st.text(max_size=60))
def test_any_text_is_a_condition_or_an_error_with_its_place(text: str) -> None:
    place = 1
    condition = again = None
    try:
        condition = RecordCondition.parse(text)
        again = RecordCondition.parse(str(condition))
    except ConditionSyntaxError as error:
        place = pickle.loads(pickle.dumps(error)).position
    assert 1 <= place <= len(text) + 1
    assert again == condition


@each(
    "text",
    [
        "drop_reason == 'timeout'",
        'dropped and drop_reason matches "^time"',
        "not failed",
        "drop_reason in ['timeout', 'empty']",
        "n >= 3 and n < 4",
        "input.n == 3",
        "meta.lang != 'en'",
        "meta.tags contains 'x' and 'y' in meta.tags",
        "meta.tags.1 == 'y'",
        "text contains 'timeout'",
        "result.score > 0.5",
        "result.score < 0.5",
        "result.text != text",
        "empty == null and absent == None",
        "n == 4 or n == 3 and dropped",
        "not (n == 4) and `n` == 3",
        "n not in (1, 2)",
        "error_type == null",
    ],
)
def test_a_condition_holds(text: str) -> None:
    assert RecordCondition.parse(text).holds(_FACTS)


@each(
    "text",
    [
        "failed",
        "drop_reason != 'timeout'",
        "n == '3'",
        "n == true",
        "text < 3",
        "n > '2'",
        "result.score == 0.5",
        "n not in [3]",
        "n contains 3",
        "empty",
        "not dropped or n == 4",
        "meta.lang.x == 'de'",
        "result.score != 0.2",
    ],
)
def test_a_condition_does_not_hold(text: str) -> None:
    assert not RecordCondition.parse(text).holds(_FACTS)


def test_a_failed_record_has_its_exception() -> None:
    for text in (
        "error_type == 'KeyError'",
        "failed and error contains 'a'",
        "input.error == 'mine'",
        "not dropped and drop_reason == null",
    ):
        assert RecordCondition.parse(text).holds(_FAILED), text


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 1, "a condition is expected"),
        ("a = 1", 3, "write == to compare"),
        ("a is null", 3, "write == to compare"),
        ("NOT failed", 1, "write 'not' in small letters"),
        ("NOT (failed)", 1, "write 'not' in small letters"),
        ("a > 1 and NOT", 11, "or a column as `NOT`"),
        ("a == NULL", 6, "write 'null' in small letters"),
        ("a == TRUE", 6, "write 'true' in small letters"),
        ("a == none", 6, "write 'null' in small letters"),
        ("failed AND a > 1", 8, "did you mean 'and'?"),
        ("a CONTAINS 'b'", 3, "did you mean 'contains'?"),
        ("a == 1 && b", 8, "write and"),
        ("a ==", 5, "the condition ends there"),
        ("drop_reason contain 'x'", 13, "did you mean 'contains'?"),
        ("a == 1 xand b", 8, "did you mean 'and'?"),
        ("len(a) > 1", 1, "there is no function"),
        ("__import__('os')", 1, "there is no function"),
        ("(a", 3, "`)` is expected"),
        ("a in 3", 6, "needs a list"),
        ("a == 'x", 6, "is no name, text, number or sign"),
        ("a not 3", 7, "`in` is expected"),
        ("text matches '('", 14, "is no regular expression"),
        ("text matches '(a+)+$'", 14, "may take very long"),
        ("text matches '(?:a*b?)*'", 14, "may take very long"),
        ("text matches n", 14, "needs a regular expression"),
        ("[1, 2", 6, "`,` or `]` is expected"),
        ("(" * 60 + "a" + ")" * 60, 52, "more than 50"),
        ("a == " + "1" * 5000, 4001, "at most 4,000"),
    ],
)
def test_an_error_names_position_and_word(text: str, position: int, reason: str) -> None:
    with pytest.raises(ConditionSyntaxError) as caught:
        RecordCondition.parse(text)
    assert caught.value.position == position
    assert reason in str(caught.value)


def test_a_column_with_the_name_of_a_word_is_in_backquotes() -> None:
    assert RecordCondition.parse("`NOT` == 1 and `null` == 2").holds(
        RecordFacts({"NOT": 1, "null": 2})
    )


@given(st.dictionaries(_KEYS, _CONSTANTS, min_size=1))
def test_each_column_can_be_named_and_compared(record: dict[str, Any]) -> None:
    facts = RecordFacts(json.loads(json.dumps(record)))
    for key, value in facts.record.items():
        condition = RecordCondition(Comparison(Name("input", (key,)), "==", Literal(value)))
        assert RecordCondition.parse(str(condition)).holds(facts)
