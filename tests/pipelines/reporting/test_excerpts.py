"""Tests of excerpts of values."""

import pytest

from dagster_dataops.pipelines.reporting.excerpts import (
    LONG,
    differences,
    excerpt,
    excerpts,
    shown_line,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a", "a"),
        ("", ""),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (2**70, "1180591620717411303424"),
        ("\ud800", "\\ud800"),
        (["\ud800"], "['\\ud800']"),
    ],
)
def test_every_value_has_a_text(value, shown):
    assert excerpt(value).encode().decode() == shown


def test_long_texts_are_cut():
    assert excerpt("abcdef", 3) == "abc…"
    assert excerpt("abcdef", 3, 1) == "…bcd…"
    assert excerpt("abcdef", 5, 1) == "…bcdef"


def test_the_first_difference_of_long_texts_is_shown():
    same = "x" * 10_000
    before, after = differences({"t": f"{same}old", "n": 1}, {"t": f"{same}new", "n": 1})
    assert (before["t"][-4:], after["t"][-4:]) == ("xold", "xnew")
    assert list(before) == ["t"]
    assert len(before["t"]) < LONG


def test_a_text_that_was_cut_short_shows_where():
    before, after = differences({"t": "x" * 1000}, {"t": "x" * 700})
    assert len(before["t"]) > len(after["t"])
    assert after["t"].startswith("…")


def test_columns_that_one_side_lacks_are_differences():
    assert differences({"a": 1, "b": None}, {"b": 0, "c": 2}) == (
        {"b": "null", "a": "1"},
        {"b": "0", "c": "2"},
    )


def test_lines_that_are_no_objects_are_shown_as_text():
    assert shown_line(b"[1]") == {"line": "[1]"}
    assert shown_line(b'{"cut": "te') == {"line": '{"cut": "te'}
    assert list(excerpts(dict.fromkeys(map(str, range(99)))))[-1] == "19"
