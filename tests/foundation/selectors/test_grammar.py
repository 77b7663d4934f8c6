"""Tests of dagster_dataops.foundation.selectors.grammar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.errors import SelectorSyntaxError
from dagster_dataops.foundation.selectors.grammar import EVERY, parse, path_text


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
