"""Tests of the words that differ between two texts."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.pipelines.reporting.word_changes import changed_words, marked
from tests.each import each


def shown(before: str, after: str) -> tuple[str, str]:
    """Return both texts with [marks]."""
    return tuple(
        "".join(f"[{piece.text}]" if piece.mark else piece.text for piece in side)
        for side in changed_words(before, after)
    )


@each(
    "case",
    [
        ("the quick fox", "the slow fox", "the [quick] fox", "the [slow] fox"),
        ("a  b  c", "a b c", "a[  ]b[  ]c", "a[ ]b[ ]c"),
        ("one two", "one two three", "one two", "one two[ three]"),
        ("  a", "a", "[  ]a", "a"),
        ("same", "same", "same", "same"),
        ("", "new", "", "[new]"),
        (
            "\u4e2d\u6587\u5b57",
            "\u4e2d\u56fd\u5b57",
            "\u4e2d[\u6587]\u5b57",
            "\u4e2d[\u56fd]\u5b57",
        ),
        ("stra\u00dfe eins", "stra\u00dfe zwei", "stra\u00dfe [eins]", "stra\u00dfe [zwei]"),
        ("f(a, b)", "f(a, c)", "f(a, [b])", "f(a, [c])"),
    ],
)
def test_only_what_differs_is_marked(case: tuple[str, str, str, str]):
    assert shown(*case[:2]) == case[2:]


def test_words_between_two_changes_are_not_marked():
    words = [f"word{n % 97}" for n in range(3000)]
    changed = list(words)
    changed[100], changed[1500], changed[2900] = "first", "second", "third"
    after = changed_words(" ".join(words), " ".join(changed))[1]
    assert [piece.text.strip() for piece in after if piece.mark] == ["first", "second", "third"]
    assert sum(len(piece.text) for piece in after) < 1500


def test_what_is_too_long_to_compare_is_counted():
    before, after = changed_words("a" * 100_000 + "first", "a" * 100_000 + "another")
    assert before[-1].text == " … 5 more characters, which were not compared"
    assert after[-1].text == " … 7 more characters, which were not compared"


@given(st.text(max_size=200), st.text(max_size=200))
def test_the_parts_are_the_whole_texts(before: str, after: str):
    sides = changed_words(before, after, around=False)
    assert ["".join(piece.text for piece in side) for side in sides] == [before, after]
    unmarked = ["".join(p.text for p in side if not p.mark).split() for side in sides]
    assert unmarked[0] == unmarked[1]


@each("kind", ["repeated", "random", "lines", "distinct", "characters"])
def test_hostile_texts_take_a_short_time(kind: str):
    chance = random.Random(0)
    few = [chance.choice(["aa", "bb", "cc"]) for _ in range(30_000)]
    pairs = {
        "repeated": ("a b " * 40_000, "b a " * 40_000),
        "random": (" ".join(few), " ".join(reversed(few))),
        "lines": ("\n".join(few), "\n".join(reversed(few))),
        "distinct": (" ".join(map(str, range(30_000))), " ".join(map(str, range(30_000, 0, -1)))),
        "characters": ("\u4e2d\u6587" * 40_000, "\u6587\u4e2d" * 40_000),
    }
    start = time.process_time()
    changed_words(*pairs[kind])
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("text", "wanted", "found"),
    [
        ("Well, Alpha  beta: gamma", ["alpha beta gamma"], ["Alpha  beta: gamma"]),
        ("a.b a+b", ["a+b"], ["a+b"]),
        ("x", ["", " "], []),
        ("aaa", ["a", "aa"], ["aa", "a"]),
    ],
)
def test_texts_are_marked_where_they_are(text: str, wanted: list[str], found: list[str]):
    pieces = marked(text, wanted)
    assert "".join(piece.text for piece in pieces) == text
    assert "".join(piece.text for piece in pieces if piece.mark) == "".join(found)
